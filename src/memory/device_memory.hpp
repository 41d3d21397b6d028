// Memory of a device (a GPU, or its substitute in host memory) as whoever passes it on refers to it.
#pragma once

#include <memory>

namespace terrace {

/// What it is, knows the room that copies to and from it alone. The mapping ends with the last owner.
class device_memory {
 public:
  virtual ~device_memory() = default;
};
using device_memory_ptr = std::shared_ptr<const device_memory>;

} // namespace terrace
