// Applies SIGHUP: compares the settings in force with newly read ones.
#pragma once

#include "daemon/settings.hpp"

#include <string>
#include <vector>

namespace terrace {

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
