#include "metrics/disk_probe.hpp"

#include <algorithm>

namespace terrace::metrics {

std::string_view to_string(disk_operation operation) {
  switch (operation) {
    case disk_operation::read: return "read";
    case disk_operation::write: return "write";
  }
  return "unknown";
}

void disk_probe::started(disk_operation operation) noexcept {
  operations_[static_cast<size_t>(operation)].in_flight.add();
}

void disk_probe::finished(disk_operation operation, uint64_t bytes, bool failed,
                          std::chrono::nanoseconds latency) noexcept {
  auto& counters = operations_[static_cast<size_t>(operation)];
  counters.in_flight.subtract();
  counters.bytes.add(bytes);
  counters.errors.add(failed ? 1 : 0);
  counters.latency.observe(latency);
}

uint64_t disk_probe::in_kernel() const noexcept {
  uint64_t all = looking_.value();
  for (size_t i = 0; i < disk_operations; ++i)
    all += std::max(operations_[i].in_flight.value(), stalled_now_[i].value());
  return all;
}

void disk_probe::line(size_t which, uint64_t waiting, uint64_t bytes_in_flight) noexcept {
  lines_[which].waiting.set(waiting);
  lines_[which].bytes_in_flight.set(bytes_in_flight);
}

void disk_probe::collect(const labels& series, sample_sink& sink) const {
  sink.gauge("terrace_disk_missing",
             "1 while the daemon runs without this path because it could not be opened.", series,
             static_cast<double>(missing_.value()));
  for (size_t i = 0; i < disk_operations; ++i) {
    const auto& counters = operations_[i];
    auto labelled = with(series, "operation", to_string(static_cast<disk_operation>(i)));
    sink.gauge("terrace_disk_in_flight", "Operations submitted to the kernel and not completed.", labelled,
               static_cast<double>(counters.in_flight.value()));
    sink.counter("terrace_disk_transferred_bytes_total", "Bytes transferred, including headers and rounding.",
                 labelled, static_cast<double>(counters.bytes.value()));
    sink.counter("terrace_disk_errors_total", "Operations that failed or were short.", labelled,
                 static_cast<double>(counters.errors.value()));
    sink.counter("terrace_disk_degradations_total", "Number of times the device was taken out of service.",
                 labelled, static_cast<double>(degradations_[i].value()));
    sink.counter("terrace_disk_contended_operations_total",
                 "Operations started while another trust group used the same device.", labelled,
                 static_cast<double>(contended_[i].value()));
    sink.counter("terrace_disk_stalls_total", "Operations that did not complete within disk.stall_after.",
                 labelled, static_cast<double>(stalls_[i].value()));
    sink.gauge("terrace_disk_stalled", "Operations currently stalled.", labelled,
               static_cast<double>(stalled_now_[i].value()));
    sink.histogram("terrace_disk_operation_duration_seconds", "Time from submission to completion.", labelled,
                   counters.latency.read());
  }
  for (size_t i = 0; i < disk_damages.size(); ++i)
    sink.counter("terrace_disk_damage_total", "Damage found in the path's file, by kind.",
                 with(series, "kind", disk_damages[i]), static_cast<double>(damages_[i].value()));
  for (size_t i = 0; i < disk_lines.size(); ++i) {
    if (disk_lines[i].empty())
      continue;
    auto labelled = with(series, "line", disk_lines[i]);
    sink.gauge("terrace_disk_queued", "Operations queued for the device.", labelled,
               static_cast<double>(lines_[i].waiting.value()));
    sink.gauge("terrace_disk_in_flight_bytes", "Bytes of operations submitted to the kernel.", labelled,
               static_cast<double>(lines_[i].bytes_in_flight.value()));
    sink.histogram("terrace_disk_wait_duration_seconds", "Time from a request to its submission.", labelled,
                   lines_[i].waited.read());
  }
}

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

void journal_probe::collect(const labels& series, sample_sink& sink) const {
  auto count = [&](const char* name, const char* help, const std::atomic<uint64_t>& value) {
    sink.counter(name, help, series, static_cast<double>(value.load(std::memory_order_relaxed)));
  };
  count("terrace_journal_records_total", "Changes of the disk tier's index.", records_);
  count("terrace_journal_blocks_total", "Blocks of 4 KiB written to the journal.", blocks_);
  count("terrace_journal_lost_total",
        "Changes not written to the journal; the next checkpoint contains them.", lost_);
  count("terrace_journal_checkpoints_total", "Completed checkpoints of the index.", checkpoints_);
  count("terrace_journal_errors_total", "Failed journal operations.", failures_);
  sink.gauge("terrace_journal_unrecorded_objects", "Objects that did not fit into the last checkpoint.",
             series, static_cast<double>(unrecorded_.load(std::memory_order_relaxed)));
  sink.gauge("terrace_journal_fill_ratio", "Fraction of the journal that a recovery would read.", series,
             fill_.load(std::memory_order_relaxed));
  sink.gauge("terrace_recovery_objects", "Objects found on disk at start.", series,
             static_cast<double>(objects_.load(std::memory_order_relaxed)));
  sink.gauge("terrace_recovery_damaged", "Unusable blocks and records found at start.", series,
             static_cast<double>(damaged_.load(std::memory_order_relaxed)));
  sink.gauge("terrace_recovery_duration_seconds", "Time spent on recovering the disk's index at start.",
             series, seconds_.load(std::memory_order_relaxed));
}

} // namespace terrace::metrics
