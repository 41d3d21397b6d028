// Changes of an arena's size: one at a time, growth before removal.
//
// New segments join when they are committed. Only whole segments are removed: if that removes more than
// wanted, a smaller new segment makes up for the difference.
#pragma once

#include "base/error.hpp"
#include "memory/segmented_arena.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace terrace {

// Messages about the host memory of a trust group: changes of its size, and its commitment.

/// The supervisor sends it to resize the arena to `bytes`. A change in progress is completed first; of
/// several pending requests the last one is used.
struct resize_memory {
  uint64_t bytes = 0;
};

/// A preparer sends it when all of the arena is committed, or the machine has less memory.
struct memory_committed {
  error failure;
};

/// Sent to the supervisor once: the initial arena is committed, or the machine has less memory than configured.
struct memory_prepared {
  size_t group = 0;
  error failure;
};

/// Used by one thread at a time; no other thread may modify the arena.
class arena_resize {
 public:
  arena_resize() = default;
  explicit arena_resize(std::shared_ptr<segmented_arena> memory) : memory_(std::move(memory)) {}

  /// If several sizes wait, the last one counts.
  void want(uint64_t bytes) { wanted_ = bytes; }

  enum class step {
    nothing, ///< the arena has this size
    grow,    ///< commit the new segments, then `end_growth`
    remove,  ///< `take_leaving`
  };
  /// Begins the wanted change, if none is in progress. Errors: those of `segmented_arena::grow`; then the
  /// arena stays as it is.
  result<step> begin();

  bool growing() const { return growing_.has_value(); }
  /// The numbers of the segments that have joined, and the address space that they add.
  struct joined {
    uint32_t first = 0, end = 0;
    uint64_t gap_bytes = 0; ///< unused address space before them
    uint64_t bytes = 0;
  };
  /// Call when the new segments are committed, or when that has `failed`: then the segments are released, and
  /// nothing will be removed.
  std::optional<joined> end_growth(bool failed = false);

  /// Returns the segments to remove, with their address ranges. The arena's size no longer includes them.
  std::vector<std::pair<uint32_t, segmented_arena::range>> take_leaving();

 private:
  std::shared_ptr<segmented_arena> memory_;
  std::optional<uint64_t> wanted_;
  std::optional<segmented_arena::growth> growing_;
  std::vector<uint32_t> leaving_; ///< removed once the growth is complete
};

inline result<arena_resize::step> arena_resize::begin() {
  if (growing_ || !wanted_)
    return step::nothing;
  uint64_t target = *std::exchange(wanted_, std::nullopt);
  uint64_t now = memory_->size(), later = now;
  if (target == now)
    return step::nothing;
  if (target < now) {
    leaving_ = memory_->choose(now - target);
    for (uint32_t number : leaving_)
      later -= memory_->range_of(number).bytes;
  }
  if (target <= later)
    return step::remove;
  auto added = memory_->grow(target - later);
  if (!added) {
    leaving_.clear();
    return tl::unexpected(added.error());
  }
  growing_ = *added;
  return step::grow;
}

inline std::optional<arena_resize::joined> arena_resize::end_growth(bool failed) {
  auto added = *std::exchange(growing_, std::nullopt);
  if (failed) {
    memory_->undo(added);
    leaving_.clear();
    return std::nullopt;
  }
  joined all{added.first, added.end, added.gap_bytes, 0};
  for (uint32_t number = added.first; number < added.end; ++number)
    all.bytes += memory_->range_of(number).bytes;
  return all;
}

inline std::vector<std::pair<uint32_t, segmented_arena::range>> arena_resize::take_leaving() {
  std::vector<std::pair<uint32_t, segmented_arena::range>> taken;
  for (uint32_t number : std::exchange(leaving_, {})) {
    taken.emplace_back(number, memory_->range_of(number));
    memory_->retire(number);
  }
  return taken;
}

} // namespace terrace
