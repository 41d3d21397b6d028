// The interface of every allocator: it divides an arena's bytes, it never touches them.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

/// A run of an arena: [offset, offset + size) in bytes from the arena's begin. `size` is physical: what the allocator
/// took, a multiple of its alignment, at least what was asked for.
struct extent {
  uint64_t offset = 0;
  uint64_t size = 0;
  friend bool operator==(const extent&, const extent&) = default;
};

struct allocator_options {
  uint64_t capacity_bytes = 0;     ///< size of the arena
  uint64_t alignment_bytes = 4096; ///< a power of two; offsets and physical sizes are multiples of it
  uint64_t boundary_bytes =
      1ULL << 30;          ///< no extent crosses a multiple of this (0: no boundary); a registered
                           ///< io_uring buffer may not exceed 1 GiB
  uint64_t slot_bytes = 0; ///< `paged` only: the size of every slot
  uint64_t reserved_bytes =
      0; ///< at the arena's begin: another's, never given out and not counted. Not for `paged`
  uint64_t small_max_bytes = 64 << 10; ///< `mixed` only: the largest object that counts as small
  uint32_t small_percent = 5; ///< `mixed` only: the share of the arena that is kept for small objects
};

struct allocator_usage {
  uint64_t capacity_bytes = 0;
  uint64_t used_bytes = 0;       ///< physical
  uint64_t requested_bytes = 0;  ///< logical: what the callers asked for
  uint64_t free_bytes = 0;       ///< capacity - used
  uint64_t largest_free_run = 0; ///< largest single request that would succeed
  uint64_t free_runs = 0;
  uint64_t allocations = 0; ///< live extents
  uint64_t smallest_bytes =
      0; ///< physical size of the smallest object since the arena was last empty; 0: none yet
  uint64_t whole_bytes =
      0; ///< free bytes that whole objects of that size would fill, end to end in each free run

  /// The share of the free bytes that not even the smallest object can use, 0 to 1.
  double fragmentation() const {
    return free_bytes == 0 ? 0 : 1 - static_cast<double>(whole_bytes) / static_cast<double>(free_bytes);
  }
};

/// Not thread-safe: an allocator belongs to one allocator actor. Deterministic: the same calls give the same extents.
class allocator {
 public:
  virtual ~allocator() = default;

  virtual std::string_view name() const = 0;

  /// One extent for each size, in their order, or none at all. Errors: `no_space` when the arena cannot hold all of
  /// them now, `bad_request` for a size of 0 or one that could never fit (`largest_possible()`).
  virtual result<std::vector<extent>> allocate(std::span<const uint64_t> sizes) = 0;

  /// Takes exactly these places, as an index does that comes back after a restart: `extents[i]` was given for a request of
  /// `requested[i]` bytes by the same allocator with the same options. All or nothing. Ascending offsets are fastest.
  /// Errors: `bad_request` for a place that is not free, or that such a request could not have got.
  virtual result<void> adopt(std::span<const extent> extents, std::span<const uint64_t> requested) = 0;

  /// Gives extents back; each must be one that `allocate` gave out and that is not free yet (asserted).
  virtual void free(std::span<const extent> extents) = 0;

  /// The physical size that a request of `bytes` takes.
  virtual uint64_t physical_size(uint64_t bytes) const = 0;

  /// The largest request that can be met by an empty arena.
  virtual uint64_t largest_possible() const = 0;

  /// O(1): an allocator actor asks after every change.
  virtual allocator_usage usage() const = 0;

  /// Of the free bytes, those that something may be put into now.
  virtual uint64_t room_bytes() const { return usage().free_bytes; }

  /// Objects as small as this may come, physical size: `usage().whole_bytes` counts in it although none came yet. 0: takes
  /// that back. An allocator whose objects have one size need not listen.
  virtual void expect(uint64_t smallest_bytes) = 0;

  /// The arena becomes larger by `bytes` at its end, or behind `gap_bytes` there that are nobody's: the last segment may
  /// end before a boundary, and the next one begins at it. Errors: `bad_request` when they are no multiple of the
  /// alignment, `bytes` is 0, or the gap does not end at a boundary.
  virtual result<void> grow(uint64_t bytes, uint64_t gap_bytes) = 0;
  result<void> grow(uint64_t bytes) { return grow(bytes, 0); }

  /// Nothing is allocated in `range` any more, for good. Its free bytes leave the capacity at once, the others as they
  /// are freed; when `used_in(range)` is 0 its owner may take the memory away. Whole segments go, so `range` begins at a
  /// boundary and ends at one, at a gap or at the arena's end. Errors: `bad_request` for any other range, or one that went.
  virtual result<void> retire(extent range) = 0;

  /// Bytes of a retired range that are still allocated.
  virtual uint64_t used_in(extent range) const = 0;

  /// Which of `candidates` have to be freed so that `sizes` fit, where freed bytes need not be one run: a short beginning
  /// of the list that is enough (for one size the shortest), and of it only those that lie where the objects would go,
  /// beside free runs or beside each other. Freeing exactly these makes `allocate(sizes)` succeed. Indices, ascending;
  /// none when the sizes fit already; nothing when all together are not enough. `candidates` are live extents, those that
  /// should leave first in front. Changes nothing that shows.
  virtual std::optional<std::vector<size_t>> choose(std::span<const uint64_t> sizes,
                                                    std::span<const extent> candidates) = 0;
};

/// The registry: `buffer`, `free_list`, `mixed`, `paged`, `size_class`. Errors: `bad_request` naming the known ones, or the option that is wrong.
result<std::unique_ptr<allocator>> make_allocator(std::string_view name, const allocator_options& options);

/// The names that `make_allocator` knows.
std::span<const std::string_view> allocator_names();

} // namespace terrace
