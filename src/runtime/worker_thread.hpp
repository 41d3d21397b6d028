// Kernel scheduling parameters of a worker's thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::runtime {

/// Names the calling thread `worker-INDEX` (as shown by `top -H`) and asks for slices (thread_priority.hpp),
/// so that a worker that wakes preempts an engine's thread. Returns whether the kernel accepted the slice.
bool prepare_worker_thread(size_t index, uint32_t slice_us);

} // namespace terrace::runtime
