// The checksum of a block on disk over itself.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <type_traits>

namespace terrace {

/// XXH3 with seed 0 over all bytes of the structure, with its checksum field set to zero.
template <class Raw>
uint64_t block_checksum(Raw copy, uint64_t Raw::*checksum) {
  static_assert(std::is_trivially_copyable_v<Raw> && std::has_unique_object_representations_v<Raw>);
  copy.*checksum = 0;
  return XXH3_64bits(&copy, sizeof copy);
}

} // namespace terrace
