// What the log says of a disk tier that was opened.
#pragma once

#include "actors/disk/disk_opening.hpp"

#include <string>

namespace terrace::actors {

/// Of one path: blocks and records of its index that were not usable.
inline uint64_t damaged_in(const opened_path& path) {
  return path.found.damaged_blocks + path.found.missing_blocks + path.found.damaged_records;
}

/// How large it is, where, and what was found in it.
std::string describe_opened(const opened_disk& disk);

/// Which of its paths it goes on without; empty when it has all.
std::string describe_left_out(const opened_disk& disk);

/// What of its index is lost; empty when nothing is.
std::string describe_losses(const opened_disk& disk);

} // namespace terrace::actors
