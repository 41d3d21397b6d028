// The interface of allocators. An allocator divides the bytes of an arena and never touches them.
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

/// A range of an arena: [offset, offset + size) in bytes from the start of the arena. `size` is physical: the
/// bytes taken, a multiple of the alignment and at least the requested size.
struct extent {
  uint64_t offset = 0;
  uint64_t size = 0;
  friend bool operator==(const extent&, const extent&) = default;
};

inline uint64_t bytes_of(const std::vector<extent>& extents) {
  uint64_t bytes = 0;
  for (const extent& one : extents)
    bytes += one.size;
  return bytes;
}

struct allocator_options {
  uint64_t capacity_bytes = 0;          ///< size of the arena
  uint64_t alignment_bytes = 4096;      ///< a power of two; offsets and physical sizes are multiples of it
  uint64_t boundary_bytes = 1ULL << 30; ///< no extent crosses a multiple of this (0: none); a registered
                                        ///< io_uring buffer may not exceed 1 GiB
  uint64_t slot_bytes = 0;              ///< `paged` only: the size of every slot
  uint64_t reserved_bytes =
      0; ///< at the start of the arena: never allocated and not counted; not for `paged`
  uint64_t small_max_bytes = 64 << 10; ///< `mixed` only: the largest object that counts as small
  uint32_t small_percent = 5;          ///< `mixed` only: the share of the arena kept for small objects
};

struct allocator_usage {
  uint64_t capacity_bytes = 0;
  uint64_t used_bytes = 0;       ///< physical
  uint64_t requested_bytes = 0;  ///< logical: the bytes that callers requested
  uint64_t free_bytes = 0;       ///< capacity - used
  uint64_t largest_free_run = 0; ///< the largest single request that would succeed
  uint64_t free_runs = 0;
  uint64_t allocations = 0; ///< live extents
  uint64_t smallest_bytes =
      0;                    ///< physical size of the smallest object since the arena was empty; 0: none yet
  uint64_t whole_bytes = 0; ///< free bytes that objects of that size would fill, end to end in each free run

  /// Returns the fraction of the free bytes that not even the smallest object can use, 0 to 1.
  double fragmentation() const {
    return free_bytes == 0 ? 0 : 1 - static_cast<double>(whole_bytes) / static_cast<double>(free_bytes);
  }
};

/// Not thread-safe: one allocator actor owns an allocator. Deterministic: the same calls give the same extents.
class allocator {
 public:
  virtual ~allocator() = default;

  virtual std::string_view name() const = 0;

  /// Allocates one extent per size, in order, or none at all. Errors: `no_space` if the arena cannot hold all
  /// of them now, `bad_request` for a size of 0 or one that can never fit (`largest_possible()`).
  virtual result<std::vector<extent>> allocate(std::span<const uint64_t> sizes) = 0;

  /// Allocates exactly these places, to restore an index after a restart: `extents[i]` was given for a
  /// request of `requested[i]` bytes by the same allocator with the same options. All or nothing. Ascending
  /// offsets are fastest. Errors: `bad_request` for a place that is not free, or that such a request could
  /// not have been given.
  virtual result<void> adopt(std::span<const extent> extents, std::span<const uint64_t> requested) = 0;

  /// Frees extents; each must have been given out by `allocate` and not be free (asserted).
  virtual void free(std::span<const extent> extents) = 0;

  /// The physical size of a request of `bytes`.
  virtual uint64_t physical_size(uint64_t bytes) const = 0;

  /// The largest request that an empty arena can satisfy.
  virtual uint64_t largest_possible() const = 0;

  /// O(1), because the allocator actor calls it after every change.
  virtual allocator_usage usage() const = 0;

  /// The free bytes that can be allocated now.
  virtual uint64_t room_bytes() const { return usage().free_bytes; }

  /// Announces that objects this small (physical size) may come: `usage().whole_bytes` counts in this size
  /// although none has come yet. 0 withdraws the announcement. Allocators for objects of one size may ignore
  /// it.
  virtual void expect(uint64_t smallest_bytes) = 0;

  /// Extends the arena by `bytes` at its end, after `gap_bytes` that belong to nobody: the last segment may
  /// end before a boundary, and the next one begins at it. Errors: `bad_request` if they are not multiples of
  /// the alignment, `bytes` is 0, or the gap does not end at a boundary.
  virtual result<void> grow(uint64_t bytes, uint64_t gap_bytes) = 0;
  result<void> grow(uint64_t bytes) { return grow(bytes, 0); }

  /// Stops allocation in `range` permanently. Its free bytes leave the capacity now, the others when they are
  /// freed; once `used_in(range)` is 0, the owner may release the memory. Whole segments are retired, so
  /// `range` begins at a boundary and ends at a boundary, a gap or the end of the arena. Errors:
  /// `bad_request` for any other range, or one already retired.
  virtual result<void> retire(extent range) = 0;

  /// Returns the bytes of a retired range that are still allocated.
  virtual uint64_t used_in(extent range) const = 0;

  /// Returns the physical size of the live extent that begins at `offset`; 0: there is none. Used by checks.
  virtual uint64_t live_size(uint64_t offset) const = 0;

  /// Chooses which of `candidates` must be freed so that `sizes` fit, since freed bytes need not be
  /// contiguous. The choice comes from a short prefix of the list that suffices (for one size the shortest),
  /// and contains only those where the objects would be placed: next to free runs or to each other. Freeing
  /// exactly these makes `allocate(sizes)` succeed. Returns ascending indices, empty if the sizes fit
  /// already; nullopt if all candidates together are not enough. `candidates` are live extents, best victims
  /// first. Has no observable effect.
  virtual std::optional<std::vector<size_t>> choose(std::span<const uint64_t> sizes,
                                                    std::span<const extent> candidates) = 0;
};

/// Makes the allocator with this name: `buffer`, `free_list`, `mixed`, `paged` or `size_class`. Errors:
/// `bad_request` that lists the known names or identifies the wrong option.
result<std::unique_ptr<allocator>> make_allocator(std::string_view name, const allocator_options& options);

/// The names accepted by `make_allocator`.
std::span<const std::string_view> allocator_names();

} // namespace terrace
