// Sizes that several benchmarks use.
#pragma once

#include <cstdint>

namespace terrace::bench {

inline constexpr uint64_t kib = 1ULL << 10;
inline constexpr uint64_t mib = 1ULL << 20;
inline constexpr uint64_t small_object = 4096; ///< where bytes are not what is measured

} // namespace terrace::bench
