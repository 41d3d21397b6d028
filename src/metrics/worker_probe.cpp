#include "metrics/worker_probe.hpp"

namespace terrace::metrics {

void worker_probe::woke() noexcept {
  sleeping_.set(0);
  wakeups_.add();
}

void worker_probe::collect(const labels& series, sample_sink& sink) const {
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
