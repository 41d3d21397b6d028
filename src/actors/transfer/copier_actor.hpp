// COPIER: a thread that copies bulk bytes, so that no worker does.
#pragma once

#include "actors/interfaces.hpp"
#include "metrics/copier_probe.hpp"

#include <caf/fwd.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace::actors {

struct copier_arguments {
  uint64_t piece_bytes = 8 << 20; ///< bytes copied between checks of the request's context
  int nice = 0;          ///< of its thread, if it is detached: 0 to 19, see runtime/thread_priority.hpp
  uint32_t slice_us = 0; ///< what a detached one asks of the kernel; 0: nothing
  std::shared_ptr<metrics::copier_probe> probe;
  bool detached = true; ///< false in tests that run everything on one thread
};

copier_actor spawn_copier(caf::actor_system& system, copier_arguments arguments);

/// The copiers of the daemon; immutable except for the turn. Safe on any thread.
class copier_pool {
 public:
  explicit copier_pool(std::vector<copier_actor> copiers) : copiers_(std::move(copiers)) {}
  const copier_actor& next() {
    return copiers_[turn_.fetch_add(1, std::memory_order_relaxed) % copiers_.size()];
  }
  const std::vector<copier_actor>& all() const { return copiers_; }

 private:
  std::vector<copier_actor> copiers_;
  std::atomic<size_t> turn_{0};
};

} // namespace terrace::actors
