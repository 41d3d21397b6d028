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

void request_probe::collect(std::span<const std::string_view> names, const labels& series,
                            sample_sink& sink) const {
  for (size_t verb = 0; verb < std::min(names.size(), verbs_max); ++verb) {
    if (names[verb].empty())
      continue;
    const auto& counters = verbs_[verb];
    auto labelled = with(series, "verb", names[verb]);
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

void resp_probe::collect(std::span<const std::string_view> names, const labels& series,
                         sample_sink& sink) const {
  for (size_t i = 0; i < std::min(names.size(), commands_max); ++i)
    sink.counter("terrace_resp_commands_total", "Commands of Redis clients, by name.",
                 with(series, "command", names[i]), static_cast<double>(commands_[i].value()));
  auto count = [&](std::string_view name, std::string_view help, const counter& value) {
    sink.counter(name, help, series, static_cast<double>(value.value()));
  };
  count("terrace_resp_errors_total", "Commands of Redis clients that were answered with an error.", errors_);
  count("terrace_resp_wrong_passwords_total", "Wrong passwords that Redis clients gave.", wrong_passwords_);
  count("terrace_resp_hits_total", "Values that Redis clients asked for and got.", hits_);
  count("terrace_resp_misses_total", "Values that Redis clients asked for and that were not there.", misses_);
  count("terrace_resp_read_bytes_total", "Bytes of values that Redis clients got.", read_bytes_);
  count("terrace_resp_stored_bytes_total", "Bytes of values that Redis clients stored.", stored_bytes_);
}

} // namespace terrace::metrics
