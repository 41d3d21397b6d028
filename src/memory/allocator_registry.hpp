// Helpers that all allocators share: validation of options and requests, and error texts.
#pragma once

#include "memory/allocator.hpp"

namespace terrace {

/// Checks that capacity, alignment and boundary fit together. Errors: `bad_request` with the option, its
/// value and the fix.
result<void> validate_arena(const allocator_options& options);

/// The physical bytes of a batch. Errors: `bad_request` for a size of 0 or above `largest_possible()`.
result<uint64_t> total_physical(const allocator& from, std::span<const uint64_t> sizes);

/// Checks that `bytes` may be added after `gap_bytes` to an arena that ends at `end`. Errors: `bad_request`.
result<void> validate_growth(const allocator_options& options, uint64_t end, uint64_t bytes,
                             uint64_t gap_bytes);

/// Checks that `range` consists of whole segments of an arena that ends at `arena_end`. `ends_there`: a
/// segment ends where the range does, at a boundary or not. Errors: `bad_request`.
result<void> validate_segments(const allocator_options& options, extent range, uint64_t arena_end,
                               bool ends_there);

/// The `bad_request` error for a range that is already retired, at least in part.
tl::unexpected<error> fail_retired_before(extent range);

/// The `bad_request` error for a place that cannot be adopted.
tl::unexpected<error> fail_place(extent place, uint64_t requested);

/// The `no_space` error for a batch that does not fit now.
tl::unexpected<error> fail_no_space(const allocator& from, size_t objects, uint64_t physical_bytes);

/// The orders in which to place a batch that does not fit in one run: as given and, if sizes differ, largest
/// first.
std::vector<std::vector<size_t>> placing_orders(std::span<const uint64_t> sizes);

/// Returns the extents sorted by offset.
std::vector<extent> by_offset(std::span<const extent> extents);

} // namespace terrace
