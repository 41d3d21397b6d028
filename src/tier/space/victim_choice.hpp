// Chooses among the proposed victims if only some of them make room for the waiting request.
#pragma once

#include "tier/messages.hpp"

#include <cstddef>
#include <vector>

namespace terrace {

/// `chosen` are indices into `named.victims`. A victim takes along all proposed victims below it in its
/// chain, because an object is evicted only after all that continue its prefix. Returns the victims in the
/// order in which they were proposed.
std::vector<entry_key> with_descendants(const victim_answer& named, const std::vector<size_t>& chosen);

} // namespace terrace
