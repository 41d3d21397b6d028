// The name of an object's stay in a tier.
#pragma once

#include <cstdint>

namespace terrace {

/// Names one stay of an object in one tier; never reused while the daemon lives (slot and generation). 0: none.
enum class object_id : uint64_t {};

} // namespace terrace
