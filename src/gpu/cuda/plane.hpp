// Tells which strided copies are one 2D copy.
#pragma once

#include <cstdint>

namespace terrace::gpu {

/// A 2D copy is one call, however many rows it has; a batch takes 0.3 to 0.8 us of a processor for each piece (H100, H200).
constexpr uint64_t rows_of_plane_min = 4;
/// CU_DEVICE_ATTRIBUTE_MAX_PITCH of all devices, in bytes.
constexpr uint64_t pitch_max = (1ULL << 31) - 1;

/// True if `count` pieces, at these distances from each other in bytes, are one 2D copy. They do not overlap:
/// `check` of copy_request.hpp refuses such requests.
constexpr bool is_plane(uint64_t count, uint64_t source_stride, uint64_t destination_stride) {
  return count >= rows_of_plane_min && source_stride <= pitch_max && destination_stride <= pitch_max;
}

} // namespace terrace::gpu
