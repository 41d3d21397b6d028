// A long window of a transfer, told to the tiers below in parts: they take each as a whole, or not at all.
#pragma once

#include "transfer/write_through_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

/// Parts of whole chunks of `objects_per_chunk` objects, each at most `bytes_max` of an arena, but at least a chunk. They share the
/// hold and the credit, which end with the last of them. Precondition: nobody waits for the notice's end.
std::vector<write_through_notice> parts_of(write_through_notice whole, size_t objects_per_chunk,
                                           uint64_t bytes_max);

} // namespace terrace
