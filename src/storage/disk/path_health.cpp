#include "storage/disk/path_health.hpp"

#include "base/printable.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

namespace terrace {

namespace {
const char* verb_of(disk_direction direction) {
  return direction == disk_direction::read ? "read" : "written";
}
} // namespace

path_health::path_health(std::string file, const health_options& options)
    : file_(std::move(file)), options_(options) {
  for (one_direction& one : directions_)
    one.health = device_health(options);
}

size_t path_health::stalled_count(disk_direction direction) const {
  return watch_.stalled(static_cast<size_t>(direction)) +
         (direction == disk_direction::write && journal_stalled_ ? 1 : 0);
}

std::string path_health::reason() const {
  std::string all;
  for (disk_direction direction : {disk_direction::read, disk_direction::write})
    if (!healthy(direction))
      all += (all.empty() ? "" : "; ") + reason(direction);
  return all;
}

std::string path_health::reason(disk_direction direction) const {
  const device_health& health = of(direction).health;
  std::string text = file_ + " cannot be " + verb_of(direction) + ": ";
  if (size_t stalled = stalled_count(direction); stalled != 0)
    return text + format_counted(stalled, "operation") + (stalled == 1 ? " has" : " have") +
           " not completed for more than " + std::to_string(options_.stall_after.count()) +
           " ms; retried when the kernel has completed all of them";
  return text + std::strerror(health.error_number()) + "; retried every " +
         std::to_string(health.pause().count()) + " ms";
}

path_health::admission path_health::admit(disk_direction direction) {
  one_direction& one = of(direction);
  if (direction == disk_direction::write && !reads())
    return {};
  bool trial = direction == disk_direction::write && one.health.now() == device_health::state::probing &&
               !one.in_trial;
  one.in_trial = one.in_trial || trial;
  return {one.health.healthy() || trial, trial};
}

bool path_health::completed(disk_direction direction, int32_t result, time_point now) {
  if (result > 0)
    of(direction).health.succeeded();
  else if (result != -EAGAIN && result != -EINTR && result != -ECANCELED)
    return of(direction).health.failed(result == 0 ? EIO : -result, now);
  return false;
}

bool path_health::journal_stalled(bool now_stalled, time_point now) {
  journal_stalled_ = now_stalled;
  return now_stalled && stalled(disk_direction::write, now);
}

int path_health::error_of_waiting(disk_direction direction) const {
  const one_direction& one = of(direction);
  return one.health.healthy() || one.in_trial ? 0 : one.health.error_number();
}

bool path_health::begin_trial(disk_direction direction) {
  one_direction& one = of(direction);
  one.awaits_stalled = stalled_count(direction) != 0;
  if (one.awaits_stalled)
    return false;
  one.health.begin_trial();
  one.in_trial = direction == disk_direction::read;
  return true;
}

bool path_health::end_trial(disk_direction direction, int error_number, time_point now) {
  one_direction& one = of(direction);
  one.in_trial = false;
  if (error_number == 0 && stalled_count(direction) != 0)
    error_number = ETIMEDOUT;
  return one.health.end_trial(error_number, now);
}

int error_of_trial(int32_t result, std::span<const std::byte, 2 * superblock_bytes> both,
                   const volume_id& volume, uint32_t path_index) {
  if (result < 0)
    return -result;
  if (result != static_cast<int32_t>(2 * superblock_bytes))
    return EIO;
  auto found = newest_superblock(both);
  return found && found->volume == volume && found->path_index == path_index ? 0 : ESTALE;
}

file_watch::news file_watch::look(int error_number, const file_attributes& seen) {
  bool missing = error_number == ENOENT || error_number == ENOTDIR;
  if (error_number != 0 && !missing)
    return news::none;
  file_damage found = missing ? file_damage::deleted
                      : seen.inode != opened_.inode || seen.device_major != opened_.device_major ||
                              seen.device_minor != opened_.device_minor
                          ? file_damage::replaced
                      : seen.bytes < opened_.bytes ? file_damage::truncated
                      : overwritten_               ? file_damage::overwritten
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
      return path_ + " was truncated to " + readable_change(bytes_, " of ", opened_.bytes) +
             ": objects beyond are lost, and objects stored there may be. Restart the daemon, which "
             "makes it whole";
    case file_damage::overwritten:
      return path_ +
             " no longer begins with its superblock, because something else has written to it: what was "
             "overwritten is damaged, and nothing of the file is found after a restart. Stop what writes "
             "there, "
             "and restart the daemon";
  }
  return {};
}

} // namespace terrace
