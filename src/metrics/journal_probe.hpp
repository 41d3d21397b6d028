// Counts the work of the journal of a disk tier's index, and shows the result of its last recovery.
#pragma once

#include "metrics/samples.hpp"

#include <atomic>
#include <cstdint>

namespace terrace::metrics {

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

  void collect(const labels& of, sample_sink& sink) const;

 private:
  std::atomic<uint64_t> records_{0}, blocks_{0}, lost_{0}, checkpoints_{0}, failures_{0}, unrecorded_{0};
  std::atomic<uint64_t> objects_{0}, damaged_{0};
  std::atomic<double> fill_{0}, seconds_{0};
};

} // namespace terrace::metrics
