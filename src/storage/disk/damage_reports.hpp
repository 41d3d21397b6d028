// What a disk tier says of objects that were not as its index says, by path.
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
    uint64_t superseded = 0; ///< another object is there: its extent was reused
    uint64_t damaged = 0;
    std::string notice;              ///< for status, if there is damage
    std::optional<std::string> line; ///< for the log, if it is time for one
  };
  /// `bad`: the indices of the objects. Returns a report per path on which there are some.
  std::vector<report> add(const std::vector<moved_object>& objects, const std::vector<size_t>& bad,
                          damage_log::time_point now);

 private:
  std::shared_ptr<const disk_paths> paths_;
  std::vector<damage_log> logs_; ///< by path
};

} // namespace terrace
