#include "metrics/shadow_probe.hpp"

namespace terrace::metrics {

void shadow_probe::set(size_t which, const totals& now) noexcept {
  line& of = lines_[which];
  of.asked.set(now.asked);
  of.hits.set(now.hits);
  of.evicted.set(now.evicted);
  of.used.set(now.used_bytes);
  of.bookkeeping.set(now.bookkeeping_bytes);
}

void shadow_probe::collect(const labels& of, sample_sink& sink) const {
  for (const line& each : lines_) {
    labels label = with(with(of, "policy", each.policy), "capacity_bytes", each.capacity);
    auto value = [](const gauge& from) { return static_cast<double>(from.value()); };
    sink.counter("terrace_shadow_asked_total", "Objects requested, as counted by the shadow policy.", label,
                 value(each.asked));
    sink.counter("terrace_shadow_hits_total", "Hits of a tier with this policy and capacity.", label,
                 value(each.hits));
    sink.counter("terrace_shadow_evictions_total", "Evictions of such a tier.", label, value(each.evicted));
    sink.gauge("terrace_shadow_used_bytes", "Bytes such a tier would hold.", label, value(each.used));
    sink.gauge("terrace_shadow_bookkeeping_bytes", "Memory used by the shadow policy.", label,
               value(each.bookkeeping));
  }
  sink.counter("terrace_shadow_skipped_total", "Requests the shadow policies skipped because they were busy.",
               of, static_cast<double>(skipped_.value()));
}

} // namespace terrace::metrics
