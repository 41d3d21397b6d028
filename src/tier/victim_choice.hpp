// Which of the named victims go when only some of them make room for the request that waits.
#pragma once

#include "tier/victims.hpp"

#include <cstddef>
#include <vector>

namespace terrace {

/// `chosen` are indices into `named.victims`. A victim takes along whatever was named below it in its chain, since an
/// object leaves only after all that continue its prefix. In the order in which they were named.
std::vector<entry_key> with_descendants(const victim_answer& named, const std::vector<size_t>& chosen);

} // namespace terrace
