// Which operations in front of a device do not come back. An operation that has seen more than `patience` ticks of a timer is
// stalled: told once, and counted until it ends after all. No clock: whoever owns the watch has the timer, and needs it
// only while something is watched. A machine that slept for an hour has seen one tick.
//
//   stall_detector watch(4);                      // with a tick every 2.5 s: between 10 and 12.5 s
//   watch.started(tag, side);  ...  bool was_stalled = watch.ended(tag);
//   for (uint64_t tag : watch.tick()) ...      // these are stalled from now on
//
// Pure bookkeeping, one thread. `side` tells apart what is counted apart: reads and writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

/// Ticks that an operation in front of a device may see before it is stalled; `stall_after` has as many.
constexpr uint32_t ticks_of_patience = 4;

class stall_detector {
 public:
  static constexpr size_t sides = 2;

  explicit stall_detector(uint32_t patience) : patience_(patience) {}

  /// Tags are small numbers, used again once they have ended. Precondition: this one is not watched.
  void started(uint64_t tag, size_t side);

  /// Precondition: watched. Whether it was stalled.
  bool ended(uint64_t tag);

  /// Those that are stalled from this tick on, by ascending tag.
  std::vector<uint64_t> tick();

  size_t stalled(size_t side) const { return stalled_[side]; }

  /// Something is watched that is not stalled: a tick may tell something.
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
