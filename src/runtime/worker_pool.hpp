// State shared by the workers: which ones sleep, their load, and the ring of an operation.
//
// The last ones are transfer workers. They run the actors that are placed there, and nothing else: no other homed actor is
// placed there, and no floating actor ever runs there, so what takes long in their rings delays nobody else.
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
  size_t serving() const { return serving_; } ///< workers that are no transfer workers
  event_loop& loop(size_t index) { return *loops_[index]; }

  /// Returns the worker for a new home: the recently least busy one; among equals, the one with the fewest
  /// residents.
  event_loop& least_busy();

  /// Returns the transfer worker with the fewest residents; without transfer workers `least_busy`.
  event_loop& transfer_worker();

  /// Returns the worker for a floating actor that no worker woke.
  event_loop& least_loaded();

  /// Returns a sleeping worker other than this one; null if there is none.
  event_loop* find_sleeper(size_t except);
  void set_asleep(size_t index, bool asleep);

  /// Cancels an operation on whichever ring has it; `from` is a ring known not to have it (null: none).
  void cancel(operation_id id, const event_loop* from);

  /// Each worker calls one of these once, when it has its ring.
  void report_started();
  void report_failure(size_t index, const error& why);

  /// Ends the process because a worker's ring fails for good with this error number, see
  /// `runtime_options::ring_lost`.
  [[noreturn]] void ring_is_lost(size_t index, int error_number);

  /// Waits until every worker has its ring.
  result<void> wait_started();

 private:
  struct load {
    uint64_t busy_ns = 0; // busy time at the last sample
    double recent = 0;    // smoothed share of busy time
  };

  void sample_load();

  const runtime_options options_;
  const size_t serving_;
  std::vector<std::unique_ptr<event_loop>> loops_;
  std::atomic<uint64_t> sleepers_{0}; // one bit per worker

  std::mutex load_mutex_; // guards the three members below
  std::vector<load> loads_;
  int64_t sampled_ns_ = 0;

  std::mutex start_mutex_; // guards the two members below
  std::condition_variable start_changed_;
  size_t started_ = 0;
  error failure_;

  std::mutex end_mutex_; // the worker that ends the process never releases it
};

} // namespace terrace::runtime
