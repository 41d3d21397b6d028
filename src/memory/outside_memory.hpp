// Memory that does not belong to a tier.
#pragma once

#include "base/keep_alive.hpp"

#include <cstddef>
#include <cstdint>

namespace terrace {

/// Memory outside the arenas: a client's region or a connection's staging memory.
struct outside_memory {
  std::byte* data = nullptr; ///< null: not mapped; use `fd`
  int fd = -1;
  uint64_t bytes = 0;
  keep_alive owner;
};

} // namespace terrace
