// What a worker asks of the kernel for its thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::runtime {

/// Names the calling thread `worker-INDEX` (as `top -H` shows it), and asks the kernel's fair scheduler for slices of
/// `slice_us` microseconds instead of its own (some milliseconds on few processors; 0: leave it). A thread with short
/// slices gets no more time than others, but it gets it sooner: when it wakes it takes the processor from a thread with
/// longer ones (Linux 6.12: EEVDF with custom slices, sched_setattr(2)). Returns whether the kernel took the slice;
/// older ones do not, and nothing else depends on it.
bool prepare_worker_thread(size_t index, uint32_t slice_us);

} // namespace terrace::runtime
