// Lists the objects of a tier, a part at a time, for the snapshot of a subscriber.
#pragma once

#include "base/error.hpp"
#include "base/object_key.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

struct list_objects_request {
  static constexpr size_t objects_max = 1'024;
  static constexpr uint32_t slots_max = 8'192; ///< slots looked at per request
  uint32_t first = 0;                          ///< first slot: 0, or `next` of the answer before
};
struct list_objects_answer {
  error failure; ///< always `ok`
  std::vector<object_key> objects;
  uint32_t next = 0;
  bool last = false; ///< no further objects follow
};

} // namespace terrace
