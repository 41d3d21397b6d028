// GPU memory that can be registered whatever the framework of this process allocates with. It comes from
// cuMemAlloc, so it has a handle.
//
//   auto memory = *device_memory::make({.device = uuid, .bytes = 256 << 20});
//   auto place = find_device_memory({.address = memory->address(), .bytes = memory->bytes()});
//
// Optional, like engine_device.hpp: the driver is looked up when this is called.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace terrace::client {

struct device_memory_options {
  std::string device; ///< the UUID of the GPU
  uint64_t bytes = 0;
  std::string driver = "libcuda.so.1"; ///< file name of the driver library
};

/// Allocated in the primary context of the GPU. The bytes are uninitialized.
class device_memory {
 public:
  /// Errors: `unsupported` without a driver; `not_found` if the driver does not show this GPU; `no_space`;
  /// `bad_request`.
  static result<std::unique_ptr<device_memory>> make(const device_memory_options& options);
  ~device_memory(); ///< precondition: nothing accesses the memory any more, and no region has it
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;

  uint64_t address() const;
  uint64_t bytes() const;

 private:
  struct parts;
  explicit device_memory(std::unique_ptr<parts> made);

  std::unique_ptr<parts> parts_;
};

} // namespace terrace::client
