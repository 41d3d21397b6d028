// Detects device operations that do not complete. An operation that has seen more than `patience` ticks of a
// timer is stalled: it is reported once and counted until it ends. No clock: the owner has the timer, and
// needs it only while operations are watched. A machine that slept for an hour has seen one tick.
//
//   stall_detector watch(4);                      // with a tick every 2.5 s: between 10 and 12.5 s
//   watch.started(tag, side);  ...  bool was_stalled = watch.ended(tag);
//   for (uint64_t tag : watch.tick()) ...      // these are stalled from now on
//
// Pure bookkeeping, one thread. `side` separates the counts of reads and writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

/// Ticks that a device operation may see before it is stalled; `stall_after` is this many ticks.
constexpr uint32_t ticks_of_patience = 4;

class stall_detector {
 public:
  static constexpr size_t sides = 2;

  explicit stall_detector(uint32_t patience) : patience_(patience) {}

  /// Tags are small numbers, reused once they have ended. Precondition: this one is not watched.
  void started(uint64_t tag, size_t side);

  /// Precondition: watched. True if it was stalled.
  bool ended(uint64_t tag);

  /// Returns the operations that became stalled with this tick, by ascending tag.
  std::vector<uint64_t> tick();

  size_t stalled(size_t side) const { return stalled_[side]; }

  /// True if an operation is watched that is not stalled, so that a tick may find something.
  bool worth_a_tick() const { return moving_ != 0; }

 private:
  enum class state : uint8_t { idle, moving, stalled };
  struct watched {
    state now = state::idle;
    uint8_t side = 0;
    uint32_t ticks = 0;
  };

  uint32_t patience_;
  std::vector<watched> operations_; ///< by tag
  std::array<size_t, sides> stalled_{};
  size_t moving_ = 0;
};

} // namespace terrace
