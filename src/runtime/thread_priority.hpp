// The scheduling priority of a thread, and what it asks of the kernel beside it.
#pragma once

#include <cstdint>

namespace terrace::runtime {

/// Lowers the calling thread's priority: its nice value becomes `nice`, 0 to 19; 0 leaves it as it is. A thread of a lower
/// priority gets less of a processor that others want as well, and all of it otherwise. Linux: nice belongs to a thread.
void be_nice(int nice);

/// Requests slices of `us` microseconds for the calling thread from the kernel's fair scheduler, instead of its default (a few
/// milliseconds on few processors; 0: keeps the default). A thread with short slices gets no more time than others, but gets
/// it sooner: when it wakes, it preempts a thread with longer ones (Linux 6.12: EEVDF with custom slices, sched_setattr(2)).
/// Returns whether the kernel accepted it; older kernels do not, and nothing else depends on it.
bool ask_for_slices(uint32_t us);

/// Gives the processor to a thread that waits for it, if there is one. A thread that works for long calls it now and then,
/// because the kernel takes a processor back at the ticks of its clock only, which are milliseconds apart. What it costs
/// depends on the slice: the kernel counts the rest of that as used.
void let_others_run();

} // namespace terrace::runtime
