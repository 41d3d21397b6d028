// The copiers of the daemon, and which of them is asked.
#pragma once

#include "actors/transfer/copier_actor.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace terrace::actors {

/// Immutable except for the turn and the loads. Safe on any thread.
class copier_pool {
 public:
  struct member {
    copier_actor copier;
    std::shared_ptr<copier_load> load; ///< null: it counts as idle
  };
  /// At least one.
  explicit copier_pool(std::vector<member> members) : members_(std::move(members)) {}

  const std::vector<member>& all() const { return members_; }

  /// The copier for one request, which must be sent to it: one of those that have the fewest. These take turns.
  const copier_actor& next();

  /// How many parts a copy of up to `parts_max` is divided into now: as many as copiers are idle, and all of them only if nobody
  /// is served; otherwise at most half of the copiers. So what comes next finds idle ones, and nothing is divided while there is
  /// enough to do. At least 1.
  size_t parts_now(size_t parts_max) const;

 private:
  std::vector<member> members_;
  std::atomic<size_t> turn_{0};
};

} // namespace terrace::actors
