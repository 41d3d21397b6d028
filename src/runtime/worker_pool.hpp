// State shared by the workers: which ones sleep, their load, and the ring of an operation.
#pragma once

#include "runtime/event_loop.hpp"

#include <caf/fwd.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace terrace::runtime {

class worker_pool {
 public:
  worker_pool(runtime_options options, size_t workers, caf::actor_system* system);

  size_t size() const { return loops_.size(); }
  event_loop& loop(size_t index) { return *loops_[index]; }

  /// The worker for a new home: recently the least busy; among equals the one with the fewest residents.
  event_loop& least_busy();

  /// The worker for a floating actor that no worker woke.
  event_loop& least_loaded();

  /// A sleeping worker other than this one; null if there is none.
  event_loop* find_sleeper(size_t except);
  void set_asleep(size_t index, bool asleep);

  /// Cancels an operation on whichever ring has it; `from` is a ring known not to have it (null: none).
  void cancel(operation_id id, const event_loop* from);

  /// Each worker calls one of these once, when it has its ring.
  void report_started();
  void report_failure(size_t index, const error& why);

  /// A worker's ring fails for good with this error number: ends the process, see `runtime_options::ring_lost`.
  [[noreturn]] void ring_is_lost(size_t index, int error_number);

  /// Waits until every worker has its ring.
  result<void> wait_started();

 private:
  struct load {
    uint64_t busy_ns = 0; // at the last sample
    double recent = 0;    // share of time, smoothed
  };

  void sample_load();

  const runtime_options options_;
  std::vector<std::unique_ptr<event_loop>> loops_;
  std::atomic<uint64_t> sleepers_{0}; // one bit per worker

  std::mutex load_mutex_; // guards the three below
  std::vector<load> loads_;
  int64_t sampled_ns_ = 0;

  std::mutex start_mutex_; // guards the two below
  std::condition_variable start_changed_;
  size_t started_ = 0;
  error failure_;

  std::mutex end_mutex_; // never released by the worker that ends the process
};

} // namespace terrace::runtime
