#include "metrics/resp_probe.hpp"

#include <algorithm>

namespace terrace::metrics {

void resp_probe::collect(std::span<const std::string_view> names, const labels& of, sample_sink& sink) const {
  for (size_t i = 0; i < std::min(names.size(), commands_max); ++i)
    sink.counter("terrace_resp_commands_total", "Commands of Redis clients, by name.",
                 with(of, "command", names[i]), static_cast<double>(commands_[i].value()));
  auto count = [&](std::string_view name, std::string_view help, const counter& value) {
    sink.counter(name, help, of, static_cast<double>(value.value()));
  };
  count("terrace_resp_errors_total", "Commands of Redis clients that were answered with an error.", errors_);
  count("terrace_resp_hits_total", "Values that Redis clients asked for and got.", hits_);
  count("terrace_resp_misses_total", "Values that Redis clients asked for and that were not there.", misses_);
  count("terrace_resp_read_bytes_total", "Bytes of values that Redis clients got.", read_bytes_);
  count("terrace_resp_stored_bytes_total", "Bytes of values that Redis clients stored.", stored_bytes_);
}

} // namespace terrace::metrics
