#include "metrics/request_probe.hpp"

#include <algorithm>

namespace terrace::metrics {

static_assert(static_cast<size_t>(errc::internal) + 1 == request_probe::outcomes);

void request_probe::started(size_t verb) noexcept {
  if (verb < verbs_max)
    verbs_[verb].in_flight.add();
}

void request_probe::finished(size_t verb, errc outcome, std::chrono::nanoseconds latency) noexcept {
  auto code = static_cast<size_t>(outcome);
  if (verb >= verbs_max || code >= outcomes)
    return;
  verbs_[verb].in_flight.subtract();
  verbs_[verb].ended[code].add();
  verbs_[verb].latency.observe(latency);
}

void request_probe::collect(std::span<const std::string_view> names, const labels& of,
                            sample_sink& sink) const {
  for (size_t verb = 0; verb < std::min(names.size(), verbs_max); ++verb) {
    if (names[verb].empty())
      continue;
    const auto& counters = verbs_[verb];
    auto labelled = with(of, "verb", names[verb]);
    sink.gauge("terrace_requests_in_flight", "Requests received and not yet answered.", labelled,
               static_cast<double>(counters.in_flight.value()));
    sink.histogram("terrace_request_duration_seconds",
                   "Time from the last byte of a request to its answer, including waits for memory.",
                   labelled, counters.latency.read());
    for (size_t code = 0; code < outcomes; ++code)
      sink.counter("terrace_requests_total", "Answered requests, by the code of the answer.",
                   with(labelled, "code", to_string(static_cast<errc>(code))),
                   static_cast<double>(counters.ended[code].value()));
  }
}

} // namespace terrace::metrics
