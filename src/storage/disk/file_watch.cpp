#include "storage/disk/file_watch.hpp"

#include <cerrno>
#include <utility>

namespace terrace {

file_watch::news file_watch::look(int error_number, const file_attributes& seen) {
  bool missing = error_number == ENOENT || error_number == ENOTDIR;
  if (error_number != 0 && !missing)
    return news::none;
  file_damage found = missing ? file_damage::deleted
                      : seen.inode != opened_.inode || seen.device_major != opened_.device_major ||
                              seen.device_minor != opened_.device_minor
                          ? file_damage::replaced
                      : seen.bytes < opened_.bytes ? file_damage::truncated
                                                   : file_damage::none;
  bytes_ = seen.bytes;
  bool again = std::exchange(now_, found) != found;
  bool changed = std::exchange(found_, found) != found;
  return changed ? news::changed : again ? news::again : news::none;
}

std::string file_watch::reason() const {
  const char* until =
      ": what is stored now is served until the daemon ends, and lost then. Stop the daemon and restore ";
  switch (now_) {
    case file_damage::none: return {};
    case file_damage::deleted:
      return path_ + " was deleted while it is open" + until + "the file or its directory";
    case file_damage::replaced: return path_ + " is not the file that was opened" + until + "that file";
    case file_damage::truncated:
      return path_ + " was truncated to " + std::to_string(bytes_) + " of " + std::to_string(opened_.bytes) +
             " bytes: objects beyond are lost, and objects stored there may be. Restart the daemon, which "
             "makes it whole";
  }
  return {};
}

} // namespace terrace
