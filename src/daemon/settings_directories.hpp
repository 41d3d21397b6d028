// Checks of the disk tier's directories that need the file system: `settings::validate()` is pure.
#pragma once

#include "daemon/settings.hpp"

#include <vector>

namespace terrace {

/// Two names of one directory: other spellings, links, or bind mounts. Blocks; for any settings that are valid.
std::vector<option_problem> repeated_directories(const settings& with);

/// Directories that do not exist, or are something else. The daemon does not make them: if a device is not
/// mounted, the tier would fill the file system below. The default directory (`default_path`,
/// `environment::state_path`) is not a problem, because `make_default_directory` makes it.
std::vector<option_problem> missing_directories(const settings& with, const std::string& default_path);

/// Makes the directory of the disk tier if it is the default one. Errors show when the file is opened.
void make_default_directory(const settings& with, const std::string& default_path);

} // namespace terrace
