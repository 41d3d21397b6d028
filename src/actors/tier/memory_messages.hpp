// What is said between the supervisor and the actors of host memory.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>

namespace terrace::actors {

/// From the supervisor: the arena shall have `bytes`. A change that is not through yet comes first, and of several that
/// wait for it the last counts.
struct resize_memory {
  uint64_t bytes = 0;
};

/// To the supervisor, once: the arena that the group began with is committed, or the machine has less memory than was
/// configured.
struct memory_prepared {
  size_t group = 0;
  error failure;
};

} // namespace terrace::actors
