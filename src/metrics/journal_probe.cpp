#include "metrics/journal_probe.hpp"

namespace terrace::metrics {

void journal_probe::now(const journal& values) noexcept {
  records_.store(values.records, std::memory_order_relaxed);
  blocks_.store(values.blocks, std::memory_order_relaxed);
  lost_.store(values.lost, std::memory_order_relaxed);
  checkpoints_.store(values.checkpoints, std::memory_order_relaxed);
  failures_.store(values.failures, std::memory_order_relaxed);
  unrecorded_.store(values.unrecorded, std::memory_order_relaxed);
  fill_.store(values.fill, std::memory_order_relaxed);
}

void journal_probe::recovered(const recovery& values) noexcept {
  objects_.store(values.objects, std::memory_order_relaxed);
  damaged_.store(values.damaged, std::memory_order_relaxed);
  seconds_.store(values.seconds, std::memory_order_relaxed);
}

void journal_probe::collect(const labels& of, sample_sink& sink) const {
  auto count = [&](const char* name, const char* help, const std::atomic<uint64_t>& value) {
    sink.counter(name, help, of, static_cast<double>(value.load(std::memory_order_relaxed)));
  };
  count("terrace_journal_records_total", "Changes of the disk tier's index.", records_);
  count("terrace_journal_blocks_total", "Blocks of 4 KiB written to the journal.", blocks_);
  count("terrace_journal_lost_total",
        "Changes not written to the journal; the next checkpoint contains them.", lost_);
  count("terrace_journal_checkpoints_total", "Completed checkpoints of the index.", checkpoints_);
  count("terrace_journal_errors_total", "Failed journal operations.", failures_);
  sink.gauge("terrace_journal_unrecorded_objects", "Objects that did not fit into the last checkpoint.", of,
             static_cast<double>(unrecorded_.load(std::memory_order_relaxed)));
  sink.gauge("terrace_journal_fill_ratio", "Fraction of the journal that a recovery would read.", of,
             fill_.load(std::memory_order_relaxed));
  sink.gauge("terrace_recovery_objects", "Objects found on disk at start.", of,
             static_cast<double>(objects_.load(std::memory_order_relaxed)));
  sink.gauge("terrace_recovery_damaged", "Unusable blocks and records found at start.", of,
             static_cast<double>(damaged_.load(std::memory_order_relaxed)));
  sink.gauge("terrace_recovery_duration_seconds", "Time spent on recovering the disk's index at start.", of,
             seconds_.load(std::memory_order_relaxed));
}

} // namespace terrace::metrics
