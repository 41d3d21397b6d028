// What every allocator shares: the checks of its options and of a request, and the words of its errors.
#pragma once

#include "memory/allocator.hpp"

namespace terrace {

/// Capacity, alignment and boundary fit each other. Errors: `bad_request` naming the option, what came and the fix.
result<void> validate_arena(const allocator_options& options);

/// The physical bytes of a batch. Errors: `bad_request` for a size of 0 or above `largest_possible()`.
result<uint64_t> total_physical(const allocator& from, std::span<const uint64_t> sizes);

/// `bytes` may be added to an arena that ends at `end`, behind such a gap. Errors: `bad_request`.
result<void> validate_growth(const allocator_options& options, uint64_t end, uint64_t bytes,
                             uint64_t gap_bytes);

/// `range` is made of whole segments of an arena that ends at `arena_end`; `ends_there`: a segment ends where the range
/// does, at a boundary or not. Errors: `bad_request`.
result<void> validate_segments(const allocator_options& options, extent range, uint64_t arena_end,
                               bool ends_there);

/// The `bad_request` error of a range that went before, in part at least.
tl::unexpected<error> fail_retired_before(extent range);

/// The `bad_request` error of a place that cannot be adopted.
tl::unexpected<error> fail_place(extent place, uint64_t requested);

/// The `no_space` error of a batch that does not fit now.
tl::unexpected<error> fail_no_space(const allocator& from, size_t objects, uint64_t physical_bytes);

/// The orders of indices in which a batch that did not fit in one run is placed: as it came, and, where sizes differ,
/// the largest first.
std::vector<std::vector<size_t>> placing_orders(std::span<const uint64_t> sizes);

/// The extents in the order of their addresses.
std::vector<extent> by_offset(std::span<const extent> extents);

} // namespace terrace
