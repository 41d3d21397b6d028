// Messages to the actor of a device, about regions.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "memory/device_memory.hpp"
#include "base/request_context.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace terrace {

/// A client's memory is mapped in the process of the device.
struct import_region_request {
  std::shared_ptr<unique_fd>
      descriptor; ///< physical memory, or a memfd for the device in host memory; null: the handle
  std::array<std::byte, 64> handle = {}; ///< of CUDA IPC
  uint64_t bytes = 0;
  context_ptr context;
  bool own = false;    ///< not a client's: new memory of the device, of a process that is there already
  bool page = false;   ///< the descriptor is a page of generations, which loads write
  uint32_t events = 0; ///< of the page, for the client
  bool peer = false;   ///< not a client's: memory of another device, which does not keep the process
};
struct import_region_answer {
  error failure;
  device_memory_ptr memory; ///< ends the mapping
};

/// Memory that the device has allocated, for the process of another one.
struct share_region_request {
  device_memory_ptr memory;
};
struct share_region_answer {
  error failure; ///< `unsupported` if it is not shared by descriptors
  std::shared_ptr<unique_fd> descriptor;
};

/// To the device from the last owner of a region.
struct drop_region_notice {
  uint64_t region = 0;
  bool opened = false; ///< a client may have its events open, so it stays until the process has ended
};

/// Answered when nothing accesses the region any more: its mapping has ended, or the process.
struct end_region_request {
  uint64_t region = 0;
};
struct end_region_answer {};

/// To whoever watches a device: its process serves, or is lost with all memory of it.
struct device_changed_notice {
  bool serves = false;
};

/// The device with this name (gpu/process/opened_device.hpp).
struct open_device_request {
  std::string name;
  bool keep = false; ///< it is not forgotten for others while nobody has memory of it
};

} // namespace terrace
