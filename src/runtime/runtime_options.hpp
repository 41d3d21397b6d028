// Options of the workers and their rings.
#pragma once

#include "base/error.hpp"
#include "runtime/ring.hpp"

#include <algorithm>
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

inline result<void> runtime_options::validate() const {
  std::string text;
  auto check = [&text](bool good, const char* name, uint64_t value, const char* expected) {
    if (good)
      return;
    if (!text.empty())
      text += "; ";
    text += std::string{"runtime."} + name + " is " + std::to_string(value) + ", expected " + expected;
  };
  check(workers <= 64, "workers", workers, "0 (automatic) to 64");
  check(transfer_workers <= 64 - std::min<size_t>(workers, 64), "transfer_workers", transfer_workers,
        "no more than 64 together with the workers");
  check(ring_entries >= 8 && ring_entries <= 32768, "ring_entries", ring_entries, "8 to 32768");
  check(max_throughput >= 1 && max_throughput <= 1000, "max_throughput", max_throughput, "1 to 1000");
  check(slice_us == 0 || (slice_us >= 100 && slice_us <= 100'000), "slice_us", slice_us,
        "0 (the kernel's) or 100 to 100000");
  check(busy_poll_us <= 1000, "busy_poll_us", busy_poll_us, "0 (off) to 1000");
  check(buffer_slots >= 1 && buffer_slots <= 16384, "buffer_slots", buffer_slots, "1 to 16384");
  if (!text.empty())
    return fail(errc::bad_request, std::move(text));
  return {};
}

inline size_t runtime_options::effective_workers(unsigned cores) const {
  if (workers != 0)
    return workers;
  return cores <= 4 ? 1 : std::min<size_t>(4, cores / 4);
}

} // namespace terrace::runtime
