// The location of an object in its tier's arena.
#pragma once

#include "index/object_id.hpp"

#include <cstdint>

namespace terrace {

struct object_place {
  object_id id{};      ///< 0: absent
  uint64_t offset = 0; ///< of the extent: the header block, then the payload (storage/object_header.hpp)
  uint64_t payload_bytes = 0;
  uint64_t physical_bytes = 0;
  uint64_t generation = 0; ///< of its write, in a durable tier (storage/index_record.hpp)
  bool present() const { return id != object_id{}; }
};

} // namespace terrace
