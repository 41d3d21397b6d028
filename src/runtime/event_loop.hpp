// The loop of one worker: runs jobs, checks for messages from other threads and for completions between them,
// and sleeps in its ring when there is nothing to do.
//
// No wake-up is lost, because of one invariant: other threads queue jobs under the lock of the external
// queue, and the worker sets `asleep` under that lock only after it has found that queue empty. So either the
// worker sees the job and does not sleep, or the other thread sees `asleep` and signals the ring's event. An
// event signalled before the wait begins ends the wait immediately.
#pragma once

#include "base/busy_poll.hpp"
#include "runtime/home.hpp"
#include "runtime/job_queue.hpp"
#include "runtime/ring_port.hpp"
#include "runtime/runtime_options.hpp"
#include "runtime/turn_times.hpp"

#include <caf/resumable.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

namespace terrace::runtime {

class worker_pool;

class event_loop {
 public:
  using job_type = job<caf::resumable>;

  /// Bounds on delay. Messages from other threads are checked between any two jobs, and the kernel is entered at
  /// least this often while operations are unsubmitted or completions are pending in the kernel. A job that inherits
  /// the turn of another (job_queue.hpp) counts as a part of it.
  static constexpr uint32_t jobs_between_enters = 16;
  static constexpr int64_t ns_between_enters = 50'000;
  /// beyond this many floating jobs, or if one waited longer, half of them go to a sleeping worker
  static constexpr size_t floating_jobs_kept = 8;
  static constexpr int64_t floating_wait_ns = 200'000;

  event_loop(worker_pool& pool, size_t index, const runtime_options& options, caf::actor_system* system);

  // -- any thread --

  /// Queues a job: locally on the loop's own thread, otherwise through the external queue.
  void enqueue(caf::resumable* job, job_kind kind);

  /// Queues a homed job. It runs next if the job that is having its turn on the loop's thread woke it last.
  void enqueue_next(caf::resumable* job);

  /// Queues through the external queue in any case.
  void post(job_type item);
  void post(const std::vector<job_type>& items);

  /// Cancels an operation of this loop's ring.
  void post_cancel(operation_id id);

  bool is_current() const;
  bool asleep() const { return asleep_.load(std::memory_order_relaxed); }
  size_t index() const { return index_; }
  home_unit& unit() { return unit_; }
  const worker_counters& counters() const { return counters_; }
  const turn_times& turns() const { return turns_; }

  // -- the worker's thread --

  /// Returns the next job; sleeps until there is one. `worker` executes the actors of completions.
  caf::resumable* next(caf::execution_unit* worker);

  /// Queues the job returned by `next` again, because it has more to do.
  void again(caf::resumable* job);

  /// Cancels all I/O and waits until none is in flight.
  void shut_down();

  // -- after the threads have ended --

  /// Removes and returns one job, or null.
  caf::resumable* drain_one();

 private:
  class next_unit final : public caf::execution_unit {
   public:
    next_unit(event_loop& loop, caf::actor_system* system) : caf::execution_unit(system), loop_(loop) {}
    void exec_later(caf::resumable* job) override { loop_.enqueue_next(job); }

   private:
    event_loop& loop_;
  };
  class unit_impl final : public home_unit {
   public:
    unit_impl(event_loop& loop, caf::actor_system* system)
        : home_unit(system, loop.index_), loop_(loop), next_(loop, system) {}
    void exec_later(caf::resumable* job) override { loop_.enqueue(job, job_kind::homed); }
    ring_port& port() override { return loop_.port_; }
    caf::execution_unit& unit_of_next() override { return next_; }
    bool is_current() const override { return loop_.is_current(); }

   private:
    event_loop& loop_;
    next_unit next_;
  };

  void start(caf::execution_unit* worker);
  job_type next_turn(); ///< sleeps until there is a job
  void begin_turn(caf::resumable* job);
  void end_turn();
  void between_jobs();
  void drain_external();
  void deliver();
  void enter(bool between_jobs = false); ///< `between_jobs`: jobs follow
  void account();
  bool poll();
  void sleep();
  void push_load();
  void go_on_unless(int refused);
  int64_t read_clock();

  worker_pool& pool_;
  const size_t index_;
  const runtime_options& options_;
  ring_port port_;
  unit_impl unit_;

  std::mutex mutex_;                      // guards the two vectors below and the setting of asleep_
  std::vector<job_type> external_;        // jobs from other threads
  std::vector<operation_id> cancels_;     // cancels from other threads
  std::atomic<bool> has_external_{false}; // a hint that saves the lock
  std::atomic<bool> asleep_{false};

  job_queue<caf::resumable> queue_;
  std::vector<job_type> taken_;
  bool started_ = false;
  job_kind current_kind_ = job_kind::floating;
  bool waited_too_long_ = false;
  uint32_t jobs_since_enter_ = 0;
  int64_t now_ns_ = 0; // the loop's clock, read between jobs
  int64_t last_enter_ns_ = 0;
  int64_t busy_since_ns_ = 0;
  const char* turn_of_ = nullptr; // name of the actor whose turn it is; null: no turn is in progress
  int64_t turn_began_ns_ = 0;
  busy_poll polling_;
  preemption_count preemptions_;
  worker_counters counters_;
  turn_times turns_;
};

} // namespace terrace::runtime
