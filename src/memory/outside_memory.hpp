// Memory that does not belong to a tier.
#pragma once

#include "base/keep_alive.hpp"
#include "memory/device_memory.hpp"

#include <cstddef>
#include <cstdint>

namespace terrace {

class region_ahead;

/// Memory outside the arenas: a client's region or a connection's staging memory.
struct outside_memory {
  std::byte* data = nullptr; ///< null: not mapped; use `fd`
  int fd = -1;
  uint64_t bytes = 0;
  keep_alive owner;
  /// belongs to the owner; if not null, only the device copies to and from the memory
  const device_memory* device = nullptr;
  /// belongs to the owner; if not null, it maps the pages that a load is about to write
  region_ahead* ahead = nullptr;
};

} // namespace terrace
