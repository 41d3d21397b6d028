// Generations that a device writes when the pools of a load have arrived in its memory.
#pragma once

#include "memory/device_memory.hpp"

#include <cstddef>
#include <cstdint>

namespace terrace {

/// Counters `slot` to `slot + count` of a page that the device has mapped: each becomes `value`, in the order of the device's
/// stream, behind the bytes.
struct device_generations {
  device_memory_ptr page; ///< null: nobody waits
  uint32_t slot = 0;
  uint32_t count = 0;
  uint32_t value = 0;

  device_generations part(size_t first, size_t counters) const {
    return {page, slot + static_cast<uint32_t>(first), static_cast<uint32_t>(counters), value};
  }
};

} // namespace terrace
