// Messages about the host memory of a trust group: changes of its size, and its commitment.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>

namespace terrace {

/// The supervisor sends it to resize the arena to `bytes`. A change in progress is completed first; of
/// several pending requests the last one is used.
struct resize_memory {
  uint64_t bytes = 0;
};

/// A preparer sends it when all of the arena is committed, or the machine has less memory.
struct memory_committed {
  error failure;
};

/// Sent to the supervisor once: the initial arena is committed, or the machine has less memory than configured.
struct memory_prepared {
  size_t group = 0;
  error failure;
};

} // namespace terrace
