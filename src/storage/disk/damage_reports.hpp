// Reports, by path, of objects in a disk tier that differed from its index.
#pragma once

#include "storage/disk/damage_log.hpp"
#include "storage/disk/disk_paths.hpp"
#include "transfer/mover_messages.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

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

} // namespace terrace
