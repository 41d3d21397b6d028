// Where memory of a GPU lies that this process has, by its address alone: what a framework's tensor tells.
//
//   auto place = find_device_memory({.address = address, .bytes = bytes});
//   auto region = daemon->register_device_region(place->allocation);
//   run.offset = place->offset + ...;                        // runs count from the begin of the allocation
//
// Optional, as engine_device.hpp: the driver is found when this is called.
#pragma once

#include "base/error.hpp"
#include "client/types.hpp"

#include <cstdint>
#include <string>

namespace terrace::client {

struct device_range {
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::string driver = "libcuda.so.1"; ///< the library
};

struct device_place {
  device_allocation allocation; ///< up to the range's end: what lies behind is not registered
  uint64_t offset = 0;          ///< of the range in it
};

/// Asks the driver whose memory it is, in which allocation it lies, and for a handle of that. The memory stays the caller's; it must not
/// be freed before the region is unregistered. Errors: `unsupported` without a driver, and for memory that the driver does not share
/// by handle (expandable segments, cudaMallocAsync); `bad_request` for what is not memory of a GPU, or reaches beyond its allocation.
result<device_place> find_device_memory(const device_range& range);

} // namespace terrace::client
