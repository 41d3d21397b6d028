// Compares counters that wrap around.
#pragma once

#include <cstdint>

namespace terrace {

/// True if a counter with the value `now` has reached `wanted`: values up to 2^31 - 1 ahead of `wanted` have.
/// This is the comparison of cuStreamWaitValue32.
constexpr bool reached(uint32_t now, uint32_t wanted) { return static_cast<int32_t>(now - wanted) >= 0; }

} // namespace terrace
