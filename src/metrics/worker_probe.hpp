// One worker thread of the actor scheduler.
#pragma once

#include "metrics/samples.hpp"

namespace terrace::metrics {

// Counts the work of all copiers together.

/// Safe on any thread.
class copier_probe {
 public:
  void queued(uint64_t bytes) noexcept { queued_bytes_.add(bytes); }

  /// Call once per `queued`; `copied` may be less, after a cancel or with a truncated region.
  void finished(uint64_t queued, uint64_t copied, bool failed) noexcept {
    queued_bytes_.subtract(queued);
    copied_bytes_.add(copied);
    failures_.add(failed ? 1 : 0);
  }

  void worked(std::chrono::nanoseconds busy) noexcept { busy_ns_.add(static_cast<uint64_t>(busy.count())); }

  void collect(const labels& series, sample_sink& sink) const {
    sink.gauge("terrace_copier_queued_bytes", "Bytes queued for a copier or being copied.", series,
               static_cast<double>(queued_bytes_.value()));
    sink.counter("terrace_copier_copied_bytes_total",
                 "Bytes copied by the daemon between regions and arenas.", series,
                 static_cast<double>(copied_bytes_.value()));
    sink.counter("terrace_copier_failures_total",
                 "Copies aborted because a client's region became inaccessible.", series,
                 static_cast<double>(failures_.value()));
    sink.counter("terrace_copier_busy_seconds_total", "Time spent copying.", series,
                 static_cast<double>(busy_ns_.value()) * 1e-9);
  }

 private:
  gauge queued_bytes_;
  counter copied_bytes_, failures_, busy_ns_;
};

/// The probe has its own cache line, because its worker writes it with every job. The worker writes it, and
/// any thread may read it.
class alignas(64) worker_probe {
 public:
  void ran(uint64_t jobs) noexcept { jobs_.add(jobs); }
  void busy(std::chrono::nanoseconds time) noexcept { busy_ns_.add(static_cast<uint64_t>(time.count())); }
  void completed(uint64_t operations) noexcept { completions_.add(operations); }
  void woke() noexcept;
  void sleeps() noexcept { sleeping_.set(1); }
  void queued(uint64_t jobs) noexcept { queue_.set(jobs); }

  uint64_t busy_ns() const noexcept { return busy_ns_.value(); }

  void collect(const labels& series, sample_sink& sink) const;

 private:
  counter jobs_, busy_ns_, completions_, wakeups_;
  gauge sleeping_, queue_;
};

inline void worker_probe::woke() noexcept {
  sleeping_.set(0);
  wakeups_.add();
}

inline void worker_probe::collect(const labels& series, sample_sink& sink) const {
  auto count = [&](std::string_view name, std::string_view help, double value) {
    sink.counter(name, help, series, value);
  };
  auto number = [](const auto& value) { return static_cast<double>(value.value()); };
  count("terrace_worker_busy_seconds_total", "Time spent on actors and completions, not asleep.",
        number(busy_ns_) * 1e-9);
  count("terrace_worker_jobs_total", "Executed turns of actors.", number(jobs_));
  count("terrace_worker_completions_total", "I/O operations that completed on the worker's ring.",
        number(completions_));
  count("terrace_worker_wakeups_total", "Number of times the worker woke up.", number(wakeups_));
  sink.gauge("terrace_worker_sleeping", "1 while the worker sleeps in its ring, 0 otherwise.", series,
             number(sleeping_));
  sink.gauge("terrace_worker_queued_jobs", "Actors ready to run on the worker.", series, number(queue_));
}

} // namespace terrace::metrics
