// Reports, by path, of objects in a disk tier that differed from its index.
#pragma once

#include "base/printable.hpp"
#include "storage/disk/disk_paths.hpp"
#include "storage/disk/path_parts.hpp"
#include "transfer/mover_messages.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

// Limits the log lines about damaged objects: the first at once, then at most one a minute, with the number of objects.

class damage_log {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds pause{60};

  /// Adds objects whose bytes were not what was written, in `file`. Returns a line if one is due.
  std::optional<std::string> add(const std::string& file, uint64_t objects, time_point now) {
    total_ += objects;
    untold_ += objects;
    if (told_ && now - *told_ < pause)
      return std::nullopt;
    told_ = now;
    std::string line =
        file + ": " + format_counted(untold_, "object") + (untold_ == 1 ? " was" : " were") + " damaged (" +
        format_count(total_) +
        " since the start); they count as misses. `terrace disk verify` shows where, when the daemon is "
        "stopped";
    untold_ = 0;
    return line;
  }

  /// Returns the text for status; empty without damage.
  std::string notice(const std::string& file) const {
    return total_ == 0 ? std::string()
                       : file + ": " + format_counted(total_, "damaged object") +
                             (total_ == 1 ? " was" : " were") + " found since the start, and not served";
  }

 private:
  uint64_t total_ = 0;
  uint64_t untold_ = 0;
  std::optional<time_point> told_;
};

/// Pure: the disk set counts and logs what is returned. Used by one thread at a time.
class damage_reports {
 public:
  damage_reports() = default;
  explicit damage_reports(std::shared_ptr<const disk_paths> paths)
      : paths_(std::move(paths)), logs_(paths_->size()) {}

  struct report {
    size_t path = 0;
    uint64_t superseded = 0; ///< objects whose place has another one: the extent was reused
    uint64_t damaged = 0;
    std::string notice;              ///< text for status, if there is damage
    std::optional<std::string> line; ///< line for the log, if one is due
  };
  /// `bad` has the indices of the bad objects. Returns a report for each path that has some.
  std::vector<report> add(const std::vector<moved_object>& objects, const std::vector<size_t>& bad,
                          damage_log::time_point now);

 private:
  std::shared_ptr<const disk_paths> paths_;
  std::vector<damage_log> logs_; ///< by path
};

inline std::vector<damage_reports::report> damage_reports::add(const std::vector<moved_object>& objects,
                                                               const std::vector<size_t>& bad,
                                                               damage_log::time_point now) {
  std::vector<report> all(paths_->size());
  for (size_t i : bad) {
    report& of = all[paths_->locate(objects[i].place.offset).path];
    ++(is_superseded(objects[i]) ? of.superseded : of.damaged);
  }
  for (size_t path = 0; path < all.size(); ++path) {
    all[path].path = path;
    if (all[path].damaged == 0)
      continue;
    const std::string& file = paths_->file(path)->path();
    all[path].line = logs_[path].add(file, all[path].damaged, now);
    all[path].notice = logs_[path].notice(file);
  }
  std::erase_if(all, [](const report& one) { return one.superseded == 0 && one.damaged == 0; });
  return all;
}

} // namespace terrace
