// COPIER: a thread that copies bulk bytes, so that no worker does.
#pragma once

#include "actors/interfaces.hpp"
#include "metrics/worker_probe.hpp"

#include <atomic>
#include <caf/fwd.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace terrace::actors {

/// Requests that a copier has been sent and has not answered. Safe on any thread.
class copier_load {
 public:
  void begins() { requests_.fetch_add(1, std::memory_order_relaxed); }
  void ends() { requests_.fetch_sub(1, std::memory_order_relaxed); }
  uint32_t requests() const { return requests_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> requests_{0};
};

struct copier_arguments {
  uint64_t piece_bytes = 8 << 20; ///< bytes copied between checks of the request's context
  int nice = 0;          ///< of its thread, if it is detached: 0 to 19, see runtime/thread_priority.hpp
  uint32_t slice_us = 0; ///< what a detached one asks of the kernel; 0: nothing
  std::shared_ptr<metrics::copier_probe> probe;
  std::shared_ptr<copier_load> load; ///< that of its pool, which counts what it sends; null: nobody counts
  bool detached = true;              ///< false in tests that run everything on one thread
};

copier_actor spawn_copier(caf::actor_system& system, copier_arguments arguments);

// The copiers of the daemon, and which of them is asked.

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
