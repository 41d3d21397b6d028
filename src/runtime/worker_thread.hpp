// Kernel scheduling parameters of a worker's thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::runtime {

/// Names the calling thread `worker-INDEX` (as shown by `top -H`) and requests slices of `slice_us`
/// microseconds from the kernel's fair scheduler instead of its default (a few milliseconds on few
/// processors; 0: keep the default). A thread with short slices gets no more time than others, but gets it
/// sooner: when it wakes, it preempts a thread with longer ones (Linux 6.12: EEVDF with custom slices,
/// sched_setattr(2)). Returns whether the kernel accepted the slice; older kernels do not, and nothing else
/// depends on it.
bool prepare_worker_thread(size_t index, uint32_t slice_us);

} // namespace terrace::runtime
