// Finds objects of chunks that nobody can complete.
#pragma once

#include "index/prefix_plan.hpp"
#include "index/rank_presence.hpp"

#include <vector>

namespace terrace {

/// A chunk counts only if all its ranks are present. If a rank is missing and its last connection has ended, the
/// chunk's other objects use memory for nothing. Returns the numbers of these objects (chunk_layout.hpp), for chunks
/// from `first_chunk` on. `present` says which objects are in any tier; chunks that were not searched have none.
std::vector<size_t> unusable_objects(const space_spec& spec, const rank_presence& ranks,
                                     const object_bitmap& present, uint32_t first_chunk);

} // namespace terrace
