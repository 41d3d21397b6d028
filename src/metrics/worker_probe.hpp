// One worker thread of the actor scheduler.
#pragma once

#include "metrics/samples.hpp"

namespace terrace::metrics {

/// The probe has its own cache line, because its worker writes it with every job. The worker writes it, and
/// any thread may read it.
class alignas(64) worker_probe {
 public:
  void ran(uint64_t jobs) noexcept { jobs_.add(jobs); }
  void busy(std::chrono::nanoseconds time) noexcept { busy_ns_.add(static_cast<uint64_t>(time.count())); }
  void completed(uint64_t operations) noexcept { completions_.add(operations); }
  void woke() noexcept;
  void sleeps() noexcept { sleeping_.set(1); }
  void gave_away(uint64_t jobs) noexcept { pushed_.add(jobs); } ///< to a sleeping worker
  void queued(uint64_t jobs) noexcept { queue_.set(jobs); }

  uint64_t busy_ns() const noexcept { return busy_ns_.value(); }

  void collect(const labels& of, sample_sink& sink) const;

 private:
  counter jobs_, busy_ns_, completions_, wakeups_, pushed_;
  gauge sleeping_, queue_;
};

} // namespace terrace::metrics
