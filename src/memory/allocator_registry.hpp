// What every allocator shares: the checks of its options and of a request, and the words of its errors.
#pragma once

#include "memory/allocator.hpp"

namespace terrace {

/// Capacity, alignment and boundary fit each other. Errors: `bad_request` naming the option, what came and the fix.
result<void> validate_arena(const allocator_options& options);

/// The physical bytes of a batch. Errors: `bad_request` for a size of 0 or above `largest_possible()`.
result<uint64_t> total_physical(const allocator& from, std::span<const uint64_t> sizes);

/// The `no_space` error of a batch that does not fit now.
tl::unexpected<error> fail_no_space(const allocator& from, size_t objects, uint64_t physical_bytes);

} // namespace terrace
