// Finds the allocation in which GPU memory of this process lies, by its address alone, which is what a
// framework's tensor gives.
//
//   auto place = find_device_memory({.address = address, .bytes = bytes});
//   auto region = daemon->register_device_region(place->allocation);
//   run.offset = place->offset + ...;                        // runs count from the start of the allocation
//
// Optional, like engine_device.hpp: the driver is looked up when this is called.
#pragma once

#include "base/error.hpp"
#include "client/types.hpp"

#include <cstdint>
#include <string>

namespace terrace::client {

struct device_range {
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::string driver = "libcuda.so.1"; ///< file name of the driver library
};

struct device_place {
  device_allocation allocation; ///< ends at the end of the range: nothing behind it is registered
  uint64_t offset = 0;          ///< offset of the range in the allocation
};

/// Asks the driver who owns the memory, in which allocation it lies, and for a handle to that. The memory
/// stays the caller's; it must not be freed before the region is unregistered. Errors: `unsupported` without
/// a driver, and for memory that the driver does not share by handle (expandable segments, cudaMallocAsync);
/// `bad_request` if the range is not GPU memory or reaches beyond its allocation.
result<device_place> find_device_memory(const device_range& range);

} // namespace terrace::client
