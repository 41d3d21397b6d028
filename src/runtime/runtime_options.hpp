// Options of the workers and their rings.
#pragma once

#include "base/error.hpp"
#include "runtime/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace terrace::runtime {

struct runtime_options {
  size_t workers = 0; ///< threads; 0: 1 on up to 4 cores, else cores / 4, at most 4
  /// Further threads, for actors whose operations take long in the kernel (worker_pool.hpp).
  size_t transfer_workers = 0;
  /// Entries of each worker's submission queue; the completion queue has 4 times as many.
  uint32_t ring_entries = 256;
  size_t max_throughput = 32; ///< messages per turn of an actor
  uint32_t slice_us =
      100; ///< kernel scheduler slice of a worker (thread_priority.hpp); 0: the kernel's default
  /// How long a worker without work polls before it sleeps (base/busy_poll.hpp); 0: it sleeps at once.
  uint32_t busy_poll_us = 0;
  uint32_t buffer_slots = 16384; ///< slots of 64 MiB for registered arenas in each ring: 1 TiB

  /// Called on each worker's thread. Unset: the kernel's io_uring.
  std::function<result<std::unique_ptr<ring>>(const runtime_options&)> make_ring;

  /// Called on a worker's thread, at most once, when the kernel refuses to enter its ring. It must end the
  /// process, because the operations of that ring never complete. Unset: the reason goes to stderr, and the
  /// process aborts.
  std::function<void(const error&)> ring_lost;

  /// Returns `bad_request` that lists every mistake.
  result<void> validate() const;

  /// `workers`, with 0 resolved for this number of cores.
  size_t effective_workers(unsigned cores) const;
};

} // namespace terrace::runtime
