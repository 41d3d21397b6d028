// Counters of a worker, for metrics, status and the watchdog.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace terrace::runtime {

/// Written by the worker alone (hence no locked instruction), read by any thread.
class plain_counter {
 public:
  void add(uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void set(uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct alignas(64) worker_counters {
  plain_counter jobs;        ///< actors resumed
  plain_counter submitted;   ///< operations given to the ring
  plain_counter completions; ///< operations reaped
  plain_counter enters;      ///< system calls that submitted or waited
  plain_counter wake_ups;    ///< number of times the worker woke up
  plain_counter pushes;      ///< number of times it gave floating jobs to a sleeping worker
  plain_counter pushed_jobs; ///< number of those floating jobs
  plain_counter polls;       ///< number of times it polled instead of sleeping at once
  plain_counter polls_paid;  ///< polls that found something
  plain_counter polling_ns;  ///< time spent polling, which is not busy
  plain_counter busy_ns;     ///< time not asleep; updated at least every 16 turns
  plain_counter
      heartbeat; ///< incremented with every turn of the loop; if it stands still, a busy worker is stuck
  plain_counter in_flight; ///< operations submitted and not reaped
  plain_counter queued;    ///< jobs in the local queue
};

} // namespace terrace::runtime
