// COPIER: a thread that copies bulk bytes, so that no worker does.
#pragma once

#include "actors/interfaces.hpp"
#include "metrics/copier_probe.hpp"

#include <caf/fwd.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

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

} // namespace terrace::actors
