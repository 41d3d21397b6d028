// Changes of an arena's size: one at a time, growth before removal.
//
// New segments join when they are committed. Whole segments are removed: if they are more than wanted, the rest comes
// back as a smaller one.
#pragma once

#include "memory/segmented_arena.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace terrace {

/// Used by one thread at a time, which is the only one that modifies the arena.
class arena_resize {
 public:
  arena_resize() = default;
  explicit arena_resize(std::shared_ptr<segmented_arena> memory) : memory_(std::move(memory)) {}

  /// Of several sizes that wait the last one counts.
  void want(uint64_t bytes) { wanted_ = bytes; }

  enum class step {
    nothing, ///< the arena has this size
    grow,    ///< commit the new segments, then `end_growth`
    remove,  ///< `take_leaving`
  };
  /// Begins the change that is wanted, if none is in progress. Errors: those of `segmented_arena::grow`; then the
  /// arena stays as it is.
  result<step> begin();

  bool growing() const { return growing_.has_value(); }
  /// The segments that have joined: their numbers, and what they add to the address space.
  struct joined {
    uint32_t first = 0, end = 0;
    uint64_t gap_bytes = 0; ///< in front of them
    uint64_t bytes = 0;
  };
  /// The new segments are committed, or `failed`: then they are gone, and nothing will be removed.
  std::optional<joined> end_growth(bool failed = false);

  /// The segments to remove, with their part of the address space: they do not count in the arena's size any more.
  std::vector<std::pair<uint32_t, segmented_arena::range>> take_leaving();

 private:
  std::shared_ptr<segmented_arena> memory_;
  std::optional<uint64_t> wanted_;
  std::optional<segmented_arena::growth> growing_;
  std::vector<uint32_t> leaving_; ///< to be removed once the growth is complete
};

} // namespace terrace
