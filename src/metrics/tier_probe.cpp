#include "metrics/tier_probe.hpp"

#include <algorithm>

namespace terrace::metrics {

std::string_view to_string(eviction_reason reason) {
  switch (reason) {
    case eviction_reason::space: return "space";
    case eviction_reason::ahead: return "ahead";
    case eviction_reason::damaged: return "damaged";
    case eviction_reason::unusable: return "unusable";
    case eviction_reason::cleared: return "cleared";
    case eviction_reason::retired: return "retired";
    case eviction_reason::staging: return "staging";
    case eviction_reason::quota: return "quota";
  }
  return "unknown";
}

void tier_probe::evicted(eviction_reason reason, uint64_t objects, uint64_t bytes) noexcept {
  auto i = static_cast<size_t>(reason);
  evictions_[i].add(objects);
  evicted_bytes_[i].add(bytes);
}

void tier_probe::occupies(const space& now) noexcept {
  capacity_.set(now.capacity_bytes);
  used_.set(now.used_bytes);
  requested_.set(now.requested_bytes);
  largest_run_.set(now.largest_free_run);
  free_runs_.set(now.free_runs);
  whole_.set(now.whole_bytes);
}

void tier_probe::collect(const labels& series, sample_sink& sink) const {
  auto count = [&](std::string_view name, std::string_view help, const counter& value) {
    sink.counter(name, help, series, static_cast<double>(value.value()));
  };
  auto level = [&](std::string_view name, std::string_view help, double value) {
    sink.gauge(name, help, series, value);
  };
  auto number = [](const gauge& value) { return static_cast<double>(value.value()); };

  count("terrace_tier_hits_total", "Requested objects that were resident.", hits_);
  count("terrace_tier_misses_total", "Requested objects that were not resident.", misses_);
  count("terrace_tier_read_bytes_total", "Bytes of objects read from the tier.", read_bytes_);
  count("terrace_tier_written_bytes_total", "Bytes of objects written to the tier.", written_bytes_);
  count("terrace_tier_admissions_total", "Objects that became resident.", admitted_);
  count("terrace_tier_evictions_without_victim_total",
        "Evictions that freed less than requested because all remaining objects were in use.", no_victim_);
  count("terrace_tier_over_evicted_bytes_total",
        "Bytes evicted beyond the request because free space was fragmented.", over_evicted_bytes_);
  count("terrace_tier_dropped_total", "Objects refused for want of room that eviction could have made.",
        dropped_);
  count("terrace_tier_prefetched_total", "Objects that prefetches read from the tier.", prefetched_);
  count("terrace_tier_prefetched_bytes_total", "Bytes of objects that prefetches read from the tier.",
        prefetched_bytes_);
  count("terrace_tier_prefetch_refused_total",
        "Objects that prefetches did not bring into the tier because there was no room.", prefetch_refused_);
  count("terrace_tier_demoted_total", "Objects of the tier that were written to a tier below at its request.",
        demoted_);
  count("terrace_tier_demoted_bytes_total",
        "Bytes of objects of the tier that were written to a tier below at its request.", demoted_bytes_);
  sink.histogram("terrace_tier_demotion_wait_seconds",
                 "Time for which evictions waited until their victims were written to a tier below.", series,
                 demotion_wait_.read());
  sink.histogram("terrace_tier_reuse_interval_seconds",
                 "Time between two accesses to a resident object, by the clock of the policy.", series,
                 reuse_.read());
  sink.histogram("terrace_tier_eviction_age_seconds",
                 "Time between the last access to an object and its eviction, by the clock of the policy.",
                 series, eviction_age_.read());
  for (size_t i = 0; i < eviction_reasons; ++i) {
    auto labelled = with(series, "reason", to_string(static_cast<eviction_reason>(i)));
    sink.counter("terrace_tier_evictions_total", "Objects evicted or removed, by reason.", labelled,
                 static_cast<double>(evictions_[i].value()));
    sink.counter("terrace_tier_evicted_bytes_total", "Bytes of objects evicted or removed, by reason.",
                 labelled, static_cast<double>(evicted_bytes_[i].value()));
  }
  for (size_t i = 0; i < refusal_reasons; ++i) {
    auto labelled = with(series, "reason", to_string(static_cast<refusal_reason>(i)));
    sink.counter("terrace_tier_refused_total", "Objects that were not admitted, by reason.", labelled,
                 static_cast<double>(refusals_[i].value()));
    sink.counter("terrace_tier_demotions_failed_total",
                 "Objects of the tier that a tier below was to get and did not, by reason.", labelled,
                 static_cast<double>(demotions_failed_[i].value()));
  }
  level("terrace_tier_objects", "Resident objects.", number(objects_));
  level("terrace_tier_waiting_requests", "Requests waiting for free bytes in the tier.", number(waiting_));
  level("terrace_tier_degraded", "1 while the tier is out of service, 0 otherwise.", number(degraded_));

  // The atomics are read one by one and may be inconsistent: they are clamped, so that no value is ever negative.
  double capacity = number(capacity_);
  double used = std::min(number(used_), capacity);
  double free = capacity - used;
  double largest = std::min(number(largest_run_), free);
  level("terrace_tier_capacity_bytes", "Configured capacity.", capacity);
  level("terrace_tier_leased_bytes", "Bytes held by leases and their readers. Host memory only.",
        number(leased_));
  level("terrace_tier_used_bytes", "Bytes used by objects, including rounding.", used);
  level("terrace_tier_requested_bytes", "Bytes used by objects, without rounding.", number(requested_));
  level("terrace_tier_free_bytes", "Free bytes.", free);
  level("terrace_tier_largest_free_run_bytes", "Size of the largest run of free bytes.", largest);
  level("terrace_tier_free_runs", "Runs of free bytes.", number(free_runs_));
  level("terrace_tier_fragmentation_ratio",
        "Fraction of the free bytes that not even the smallest objects can use.",
        free > 0 ? 1 - std::min(number(whole_), free) / free : 0);
}

void shadow_probe::set(size_t which, const totals& now) noexcept {
  line& of = lines_[which];
  of.asked.set(now.asked);
  of.hits.set(now.hits);
  of.evicted.set(now.evicted);
  of.used.set(now.used_bytes);
  of.bookkeeping.set(now.bookkeeping_bytes);
}

void shadow_probe::collect(const labels& series, sample_sink& sink) const {
  for (const line& each : lines_) {
    labels label = with(with(series, "policy", each.policy), "capacity_bytes", each.capacity);
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
               series, static_cast<double>(skipped_.value()));
}

} // namespace terrace::metrics
