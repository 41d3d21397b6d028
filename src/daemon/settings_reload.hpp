// Applies SIGHUP: compares the settings in force with newly read ones.
#pragma once

#include "daemon/settings.hpp"

#include <string>
#include <vector>

namespace terrace {

// Checks of the disk tier's directories that need the file system: `settings::validate()` is pure.

/// Two names of one directory: other spellings, links, or bind mounts. Blocks; for any settings that are valid.
std::vector<option_problem> repeated_directories(const settings& with);

/// Directories that do not exist, or are something else. The daemon does not make them: if a device is not
/// mounted, the tier would fill the file system below. The default directory (`default_path`,
/// `environment::state_path`) is not a problem, because `make_default_directory` makes it.
std::vector<option_problem> missing_directories(const settings& with, const std::string& default_path);

/// Makes the directory of the disk tier if it is the default one. Errors show when the file is opened.
void make_default_directory(const settings& with, const std::string& default_path);

struct option_change {
  std::string option; ///< as in `option_problem`; only `listen` if sockets were added or removed
  std::string before; ///< as written in the file
  std::string after;
  bool at_run_time; ///< applies now; otherwise at the next start

  /// A line for the log: "daemon.log_level: "info" -> "debug", in force now".
  std::string text() const;
};

/// Every option that differs, in table order. Both must be validated.
std::vector<option_change> changes_at_run_time(const settings& old_settings, const settings& new_settings);

/// `old_settings` with those changes of `new_settings` that apply at run time.
settings apply_at_run_time(const settings& old_settings, const settings& new_settings);

} // namespace terrace
