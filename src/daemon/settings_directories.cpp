#include "daemon/settings_directories.hpp"

#include <algorithm>
#include <filesystem>

namespace terrace {

namespace fs = std::filesystem;

namespace {

bool is_same(const std::string& one, const std::string& other) {
  std::error_code failed;
  if (fs::equivalent(one, other, failed) && !failed)
    return true;
  // Directories that do not exist have no identity, but their existing parents have.
  auto name = fs::weakly_canonical(one, failed);
  return !failed && name == fs::weakly_canonical(other, failed) && !failed;
}

} // namespace

std::vector<option_problem> repeated_directories(const settings& with) {
  std::vector<option_problem> found;
  if (!with.disk.enabled)
    return found;
  const auto& paths = with.disk.path;
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    auto same =
        std::find_if(paths.begin(), path, [&](const std::string& other) { return is_same(*path, other); });
    if (same != path && *same != *path) // equal names are found without the file system
      found.push_back({"disk.path", "names one directory twice, as \"" + *same + "\" and \"" + *path + "\"",
                       "another directory for each path", "remove one of them"});
  }
  return found;
}

std::vector<option_problem> missing_directories(const settings& with, const std::string& default_path) {
  std::vector<option_problem> found;
  if (!with.disk.enabled)
    return found;
  for (const std::string& path : with.disk.path) {
    std::error_code failed;
    auto status = fs::status(path, failed);
    if (status.type() == fs::file_type::not_found && path != default_path)
      found.push_back({"disk.path", "names \"" + path + "\", which does not exist", "an existing directory",
                       "mount its device, or make the directory; the daemon does not make it"});
    else if (fs::exists(status) && !fs::is_directory(status))
      found.push_back({"disk.path", "names \"" + path + "\", which is not a directory",
                       "an existing directory", "name the directory of the file"});
  }
  return found;
}

void make_default_directory(const settings& with, const std::string& default_path) {
  std::error_code ignored;
  if (with.disk.enabled && with.disk.path == std::vector{default_path})
    fs::create_directories(default_path, ignored);
}

} // namespace terrace
