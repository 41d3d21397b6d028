// The location of an object in its tier's arena.
#pragma once

#include "index/object_id.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

struct object_place {
  object_id id{};      ///< 0: absent
  uint64_t offset = 0; ///< start of the extent: the header block, then the payload (index/object_header.hpp)
  uint64_t payload_bytes = 0;
  uint64_t physical_bytes = 0;
  uint64_t generation = 0; ///< generation of its write, in a durable tier (index/index_record.hpp)
  bool present() const { return id != object_id{}; }
};

inline size_t count_present(const std::vector<object_place>& places) {
  return static_cast<size_t>(
      std::count_if(places.begin(), places.end(), [](const object_place& one) { return one.present(); }));
}

} // namespace terrace
