// Messages about the host memory of a trust group: its size, and that it is committed.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>

namespace terrace {

/// From the supervisor: resize the arena to `bytes`. A change in progress is completed first; of several
/// pending requests the last one is used.
struct resize_memory {
  uint64_t bytes = 0;
};

/// From a preparer: all of the arena is committed, or the machine has less memory.
struct memory_committed {
  error failure;
};

/// To the supervisor, once: the initial arena is committed, or the machine has less memory than configured.
struct memory_prepared {
  size_t group = 0;
  error failure;
};

} // namespace terrace
