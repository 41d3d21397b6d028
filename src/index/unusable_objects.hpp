// Objects of chunks that nobody can complete.
#pragma once

#include "index/prefix_plan.hpp"
#include "index/rank_presence.hpp"

#include <vector>

namespace terrace {

/// A chunk counts only if all its ranks are present. If one is missing and its last connection has ended, the others
/// take space for nothing. Returns their numbers (chunk_layout.hpp), of the chunks from `first_chunk` on. `present`:
/// in any tier; chunks that were not searched have nothing there.
std::vector<size_t> unusable_objects(const space_spec& spec, const rank_presence& ranks,
                                     const object_bitmap& present, uint32_t first_chunk);

} // namespace terrace
