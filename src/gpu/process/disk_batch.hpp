// Which objects of a request a device reads at a time. Pure.
#pragma once

#include "gpu/disk_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace::gpu {

/// Smaller batches cost more than they gain.
constexpr uint64_t disk_batch_bytes_min = 8 << 20;

/// So that the parts of a request are read, verified and copied at the same time.
constexpr uint64_t disk_batch_bytes(uint64_t request_bytes, uint64_t slot_bytes) {
  return std::min(slot_bytes, std::max(request_bytes / (2 * disk_reader::slots), disk_batch_bytes_min));
}

/// The end of the batch that begins with object `begin`: `bytes_max` at most, but one object at least, which must fit in a slot.
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
