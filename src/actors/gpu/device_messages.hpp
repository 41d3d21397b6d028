// Messages to the actor of a device, about regions.
#pragma once

#include "base/error.hpp"
#include "base/request_context.hpp"
#include "base/unique_fd.hpp"
#include "memory/device_memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace terrace {

/// Maps a client's memory in the process of the device.
struct import_region_request {
  std::shared_ptr<unique_fd>
      descriptor; ///< physical memory, or a memfd for the device in host memory; null: use the handle
  std::array<std::byte, 64> handle = {}; ///< handle of CUDA IPC
  uint64_t bytes = 0;
  context_ptr context;
  bool own = false;    ///< not a client's: new memory of the device, in a process that exists already
  bool page = false;   ///< the descriptor is a page of generations, which loads write
  uint32_t events = 0; ///< number of events that the page has for the client
  bool peer = false;   ///< not a client's: memory of another device, which does not keep the process alive
};
struct import_region_answer {
  error failure;
  device_memory_ptr memory; ///< its last owner ends the mapping
};

/// Shares memory that the device has allocated with the process of another device.
struct share_region_request {
  device_memory_ptr memory;
};
struct share_region_answer {
  error failure; ///< `unsupported` if it is not shared by descriptors
  std::shared_ptr<unique_fd> descriptor;
};

/// The last owner of a region sends it to the device.
struct drop_region_notice {
  uint64_t region = 0;
  /// A client may have its events open, so the mapping stays until the process has ended.
  bool opened = false;
};

/// The answer comes when nothing accesses the region any more: its mapping or the process has ended.
struct end_region_request {
  uint64_t region = 0;
};
struct end_region_answer {};

/// Tells those who watch a device that its process serves, or is lost with all memory of the device.
struct device_changed_notice {
  bool serves = false;
};

/// Asks for the device with this name (gpu/process/device_child.hpp).
struct open_device_request {
  std::string name;
  bool keep = false; ///< others can still find it while nobody has memory of it
};

} // namespace terrace
