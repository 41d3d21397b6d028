// The copiers of the daemon, and which of them is asked.
#pragma once

#include "actors/transfer/copier_actor.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace terrace::actors {

/// Immutable except for the turn. Safe on any thread.
class copier_pool {
 public:
  struct member {
    copier_actor copier;
    std::shared_ptr<const copier_load> load; ///< null: not known, taken for idle
  };
  /// At least one.
  explicit copier_pool(std::vector<member> members) : members_(std::move(members)) {}

  const std::vector<member>& all() const { return members_; }

  /// They take turns, and those that are idle come before the others.
  const copier_actor& next();

  /// For a copy of up to `parts_max` parts: those that are idle, and all of them only if nobody else is served; otherwise at most
  /// half of the copiers. So what comes next finds idle ones, and a copy is not divided while there is enough to do. At least
  /// one, the next.
  std::vector<copier_actor> some(size_t parts_max);

 private:
  std::vector<member> members_;
  std::atomic<size_t> turn_{0};
};

} // namespace terrace::actors
