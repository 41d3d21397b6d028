// The bytes of an arena, free and taken, and their accounts: what the allocators of variable sizes share.
#pragma once

#include "memory/allocator.hpp"
#include "memory/free_runs.hpp"
#include "memory/live_extents.hpp"

namespace terrace {

/// It knows what is free; where an object goes is its allocator's decision. All that it says of itself depends on the
/// live extents alone, not on how they came to be.
class extent_map {
 public:
  explicit extent_map(const allocator_options& options);

  uint64_t physical_size(uint64_t bytes) const {
    return (bytes + options_.alignment_bytes - 1) & ~(options_.alignment_bytes - 1);
  }
  uint64_t largest_possible() const { return usable_.largest(); }
  uint64_t free_bytes() const { return runs_.bytes(); }
  uint64_t end() const { return end_; } ///< of the address space
  const free_runs& runs() const { return runs_; }

  /// Makes one extent, or several side by side (`take_run`, then `add` for each), of free bytes.
  void take_run(extent run) {
    live_.prefetch(run.offset);
    runs_.take(run);
  }
  void add(extent made, uint64_t requested, uint32_t tag);

  /// Takes given places, all or none. Errors: `bad_request` naming the first that is not free or has the wrong size.
  result<void> adopt(std::span<const extent> extents, std::span<const uint64_t> requested, uint32_t tag);

  /// The two halves of a free, in any order: the bytes, alone or joined with others, and the entry. Both assert that the
  /// extent is live.
  void give_run(extent run);
  live_extents::entry remove(const extent& e);

  /// For an allocator that changes its mind about a live extent.
  live_extents::entry* find(uint64_t offset) { return live_.find(offset); }

  allocator_usage usage() const;
  void expect(uint64_t smallest_bytes);
  result<void> grow(uint64_t bytes, uint64_t gap_bytes);
  result<void> retire(extent range);
  uint64_t used_in(extent range) const;
  /// The parts of `run` that were not retired.
  std::vector<extent> usable(extent run) const { return usable_.within(run); }
  bool any_retired() const { return !retired_.empty(); }
  std::optional<std::vector<size_t>> choose(std::span<const uint64_t> sizes,
                                            std::span<const extent> candidates);

 private:
  struct retired {
    extent range;
    uint64_t used = 0;
  };

  /// Where largest-first first fit would put the objects; empty when it does not find room.
  std::vector<extent> trial(std::span<const uint64_t> sorted_sizes);

  allocator_options options_;
  free_runs runs_;
  free_runs usable_; ///< all that was not retired, in use or not
  live_extents live_;
  std::vector<retired> retired_;
  uint64_t end_ = 0;
  uint64_t used_bytes_ = 0;
  uint64_t requested_bytes_ = 0;
  uint64_t smallest_ = 0;
  uint64_t expected_ = 0; ///< what `smallest_` is while nothing is live
};

} // namespace terrace
