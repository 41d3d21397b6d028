#include "metrics/remote_probe.hpp"

#include <algorithm>

namespace terrace::metrics {

void remote_probe::answered(std::chrono::nanoseconds took) noexcept {
  answers_.observe(took);
  recent_ns_[answered_.value() % recent_ns_.size()].set(
      static_cast<uint64_t>(std::max<int64_t>(took.count(), 0)));
  answered_.add();
}

remote_probe::recent_answers remote_probe::recent() const noexcept {
  const uint64_t count = std::min<uint64_t>(answered_.value(), recent_ns_.size());
  uint64_t sum = 0, slowest = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t took = recent_ns_[i].value();
    sum += took;
    slowest = std::max(slowest, took);
  }
  return {static_cast<uint32_t>(count),
          std::chrono::nanoseconds(count == 0 ? 0 : static_cast<int64_t>(sum / count)),
          std::chrono::nanoseconds(static_cast<int64_t>(slowest))};
}

void remote_probe::collect(const labels& series, sample_sink& sink) const {
  auto count = [&](std::string_view name, std::string_view help, const labels& label, const counter& value) {
    sink.counter(name, help, label, static_cast<double>(value.value()));
  };
  constexpr std::string_view presence = "terrace_remote_presence_total";
  constexpr std::string_view presence_help =
      "Objects that lookups asked for: known to the daemon, present in the store, or absent.";
  count(presence, presence_help, with(series, "answer", "known"), known_);
  count(presence, presence_help, with(series, "answer", "present"), present_);
  count(presence, presence_help, with(series, "answer", "absent"), absent_);
  count("terrace_remote_late_lookups_total", "Lookups that the store did not answer within lookup_budget.",
        series, late_);
  count("terrace_remote_read_objects_total", "Objects that were read from the store and verified.", series,
        read_);
  count("terrace_remote_read_bytes_total", "Bytes of these objects.", series, read_bytes_);
  count("terrace_remote_written_objects_total", "Objects that were written to the store.", series, written_);
  count("terrace_remote_written_bytes_total", "Bytes of these objects.", series, written_bytes_);
  count("terrace_remote_stored_bytes_total",
        "Bytes that were stored for them: fewer if values are compressed, more if objects were written in "
        "part.",
        series, stored_bytes_);
  count("terrace_remote_clears_by_others_total", "Clears by other machines that this one has followed.",
        series, cleared_);
  count("terrace_remote_hedges_total",
        "Requests that were sent a second time, because their answers were late.", series, hedges_);
  count("terrace_remote_hedges_won_total", "Second requests that were answered before the first ones.",
        series, hedges_won_);
  for (bool writes : {false, true})
    count("terrace_remote_retries_total",
          "Commands that were sent once more, because their connection was lost or a bucket refused them for "
          "the moment: those that change nothing in the store, and others.",
          with(series, "command", writes ? "write" : "read"), writes ? write_retries_ : read_retries_);
  for (size_t how = 0; how < by_replica_.size(); ++how)
    count("terrace_remote_replica_reads_total",
          "Objects that a replica was asked for: read there, or read from its primary instead, because they "
          "were not there or damaged.",
          with(series, "answer", std::string(replica_answers[how])), by_replica_[how]);
  sink.histogram("terrace_remote_answer_seconds",
                 "Time of the store's answers to questions, without payloads.", series, answers_.read());
  for (size_t why = 0; why < misses_.size(); ++why)
    count("terrace_remote_misses_total", "Reads from the store that were misses.",
          with(series, "reason", std::string(remote_misses[why])), misses_[why]);
}

} // namespace terrace::metrics
