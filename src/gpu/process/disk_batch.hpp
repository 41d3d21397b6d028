// Divides the objects of a request into the batches that a device reads. Pure.
#pragma once

#include "gpu/disk_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::gpu {

/// Smaller batches cost more than they gain.
constexpr uint64_t disk_batch_bytes_min = 8 << 20;

/// Small enough that the parts of a request are read, verified and copied at the same time.
constexpr uint64_t disk_batch_bytes(uint64_t request_bytes, uint64_t slot_bytes) {
  return std::min(slot_bytes, std::max(request_bytes / (2 * disk_reader::slots), disk_batch_bytes_min));
}

/// Returns the end of the batch that begins with object `begin`. It has at most `bytes_max`, but at least one
/// object, which must fit in a slot.
inline size_t disk_batch_end(std::span<const uint64_t> object_bytes, size_t begin, uint64_t bytes_max) {
  size_t end = begin;
  for (uint64_t bytes = 0; end < object_bytes.size() && end - begin < disk_reader::extents_max; ++end) {
    bytes += object_bytes[end];
    if (end != begin && bytes > bytes_max)
      break;
  }
  return end;
}

} // namespace terrace::gpu
