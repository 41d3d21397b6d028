// Records how long actors' turns take, by kind of actor: a long turn delays all other actors of its worker.
#pragma once

#include <array>
#include <atomic>
#include <caf/actor_config.hpp>
#include <caf/execution_unit.hpp>
#include <caf/resumable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace terrace::runtime {

// Counters of a worker, for metrics, status and the watchdog.

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

// In debug builds, a turn of an actor that takes too long ends the process, because all other actors of its
// worker wait for it.

/// Used by one thread. Counts the processor time of the thread, not the time that the kernel gives to others.
class turn_limit {
 public:
  /// 0: no limit, and the clock is not read.
  explicit turn_limit(int64_t limit_ns) : limit_ns_(limit_ns) {}

  void begin() {
    if (limit_ns_ != 0)
      began_ns_ = processor_time_ns();
  }
  /// Aborts if the turn of `actor` took longer than the limit.
  void end(const char* actor) const {
    if (limit_ns_ == 0)
      return;
    if (int64_t took = processor_time_ns() - began_ns_; took > limit_ns_)
      exceeded(actor, took);
  }

 private:
  static int64_t processor_time_ns();
  [[noreturn]] void exceeded(const char* actor, int64_t took_ns) const;

  int64_t limit_ns_;
  int64_t began_ns_ = 0;
};

// Ends turns early for actors whose messages may take long. CAF gives every actor the same number of messages
// per turn. Thirty-two short messages are done quickly, but thirty-two slices of a long lookup take most of a
// millisecond, during which the worker's other actors wait, even those that this actor just answered.

/// Mixin: `Base` with turns that end after the first message that completes later than `turn`. Urgent
/// messages are checked after every message. Tests supply their own clock.
template <class Base, class Clock = std::chrono::steady_clock>
class short_turns : public Base {
 public:
  static constexpr std::chrono::microseconds turn{10};

  explicit short_turns(caf::actor_config& config) : Base(config) {}

  caf::resumable::resume_result resume(caf::execution_unit* worker, size_t messages_at_most) override {
    auto end = Clock::now() + turn;
    for (size_t handled = 1;; ++handled) {
      auto result = Base::resume(worker, 1);
      if (result != caf::resumable::resume_later || handled == messages_at_most || Clock::now() >= end)
        return result;
    }
  }
};

/// Written by one worker, read by any thread.
class turn_times {
 public:
  /// Upper bounds in nanoseconds, inclusive; longer turns go into one more bucket.
  static constexpr std::array<uint64_t, 19> bounds_ns = {
      10'000,      25'000,        50'000,        100'000,       250'000,       500'000,     1'000'000,
      2'500'000,   5'000'000,     10'000'000,    25'000'000,    50'000'000,    100'000'000, 250'000'000,
      500'000'000, 1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000};
  static constexpr size_t kinds_max = 32;

  struct kind {
    /// A string literal; null: this entry and the following ones are unused.
    std::atomic<const char*> name{nullptr};
    std::array<plain_counter, bounds_ns.size() + 1> turns;
    plain_counter sum_ns;
    plain_counter longest_ns;
  };

  /// `name`: a string literal. The last kind counts all kinds beyond `kinds_max`.
  void add(const char* name, int64_t duration_ns);

  const std::array<kind, kinds_max>& kinds() const { return kinds_; }

 private:
  kind& of(const char* name);
  std::array<kind, kinds_max> kinds_;
};

} // namespace terrace::runtime
