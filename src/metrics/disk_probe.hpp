// The device of a disk tier.
#pragma once

#include "metrics/samples.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace terrace::metrics {

// Counts the work of the journal of a disk tier's index, and shows the result of its last recovery.

/// Each extent file has one. Safe on any thread; each setter has one calling actor.
class journal_probe {
 public:
  /// Totals since the volume was opened (`journal_counts` in storage/index_journal.hpp), except `fill`.
  struct journal {
    uint64_t records = 0, blocks = 0, lost = 0, checkpoints = 0, failures = 0;
    uint64_t unrecorded = 0; ///< objects that did not fit in the last checkpoint
    double fill = 0;         ///< used part of the journal, 0 to 1
  };
  void now(const journal& values) noexcept;

  /// The result of the recovery at the start.
  struct recovery {
    uint64_t objects = 0;
    uint64_t damaged = 0; ///< unusable blocks and records
    double seconds = 0;
  };
  void recovered(const recovery& values) noexcept;

  void collect(const labels& series, sample_sink& sink) const;

 private:
  std::atomic<uint64_t> records_{0}, blocks_{0}, lost_{0}, checkpoints_{0}, failures_{0}, unrecorded_{0};
  std::atomic<uint64_t> objects_{0}, damaged_{0};
  std::atomic<double> fill_{0}, seconds_{0};
};

enum class disk_operation : uint8_t { read, write };
constexpr size_t disk_operations = 2;
std::string_view to_string(disk_operation operation);

/// The names of a device's queues (`io_class` in transfer/io_scheduler.hpp, in its order); unused queues have no name.
constexpr std::array<std::string_view, 4> disk_lines{"load", "", "write", ""};

/// Defects of a path's file, other than errors of its device.
enum class disk_damage : uint8_t {
  object,     ///< its bytes are not those that were written
  superseded, ///< another object is there; the removal did not reach the index before a crash
  superblock, ///< one of the copies, found when the volume was opened
  deleted,    ///< the file was deleted while it was open
  replaced,
  truncated,
  overwritten, ///< its superblock, by something else
};
constexpr std::array<std::string_view, 7> disk_damages{"object",   "superseded", "superblock", "deleted",
                                                       "replaced", "truncated",  "overwritten"};

/// Each extent file has one. Safe on any thread.
class disk_probe {
 public:
  /// The file could not be opened, and the daemon runs without it.
  void missing() noexcept { missing_.set(1); }

  /// The current state of a queue.
  void line(size_t which, uint64_t waiting, uint64_t bytes_in_flight) noexcept;

  /// The device was taken out of service for reads or for writes.
  void degraded(disk_operation operation) noexcept { degradations_[static_cast<size_t>(operation)].add(); }

  /// An operation was started while another trust group used the device.
  void contended(disk_operation operation) noexcept { contended_[static_cast<size_t>(operation)].add(); }

  /// An operation did not complete in time, or completed after all.
  void stalled(disk_operation operation) noexcept {
    stalls_[static_cast<size_t>(operation)].add();
    stalled_now_[static_cast<size_t>(operation)].add();
  }
  void unstalled(disk_operation operation) noexcept {
    stalled_now_[static_cast<size_t>(operation)].subtract();
  }

  /// An operation left its queue for the kernel.
  void waited(size_t which, std::chrono::nanoseconds how_long) noexcept {
    lines_[which].waited.observe(how_long);
  }

  void damaged(disk_damage damage, uint64_t count = 1) noexcept {
    damages_[static_cast<size_t>(damage)].add(count);
  }

  void started(disk_operation operation) noexcept;

  /// Call once per `started`. `bytes` is 0 for an operation that failed; a short read is a failure.
  void finished(disk_operation operation, uint64_t bytes, bool failed,
                std::chrono::nanoseconds latency) noexcept;

  /// The daemon asked for the file's attributes, or got them.
  void looking(bool now) noexcept { looking_.set(now ? 1 : 0); }

  /// Counts operations that the kernel has not completed, including stalled ones of the journal.
  uint64_t in_kernel() const noexcept;

  void collect(const labels& series, sample_sink& sink) const;

 private:
  struct operation_counters {
    gauge in_flight;
    counter bytes, errors;
    latency_histogram latency;
  };
  struct line_counters {
    gauge waiting, bytes_in_flight;
    latency_histogram waited;
  };
  std::array<operation_counters, disk_operations> operations_;
  std::array<counter, disk_operations> degradations_, stalls_, contended_;
  std::array<gauge, disk_operations> stalled_now_;
  std::array<line_counters, disk_lines.size()> lines_;
  std::array<counter, disk_damages.size()> damages_;
  gauge missing_, looking_;
};

// The probes of one path of a disk tier.

struct path_probes {
  std::shared_ptr<disk_probe> disk = std::make_shared<disk_probe>();
  std::shared_ptr<journal_probe> journal = std::make_shared<journal_probe>();
};

} // namespace terrace::metrics
