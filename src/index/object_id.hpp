// Identifies an object in its tier.
#pragma once

#include <cstdint>

namespace terrace {

/// Identifies one stay of an object in one tier; never reused while the daemon runs (slot and generation). 0: none.
enum class object_id : uint64_t {};

} // namespace terrace
