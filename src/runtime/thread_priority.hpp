// Sets the scheduling priority and the time slices of a thread.
#pragma once

#include <cstdint>
#include <string>

namespace terrace::runtime {

/// Names the calling thread (as shown by `top -H`) and asks for slices (thread_priority.hpp),
/// so that a worker that wakes preempts an engine's thread. Returns whether the kernel accepted the slice.
bool prepare_worker_thread(const std::string& name, uint32_t slice_us);

/// Raises the nice value of the calling thread by `more`, to 19 at most. A thread of lower priority gets less of a processor
/// that others want as well, and all of it otherwise. On Linux, nice belongs to a thread.
void be_nice(int more);

/// Requests slices of `us` microseconds for the calling thread from the kernel's fair scheduler, instead of
/// its default of a few milliseconds; 0 keeps the default. A thread with short slices gets no more time than
/// others, but gets it sooner: when it wakes, it preempts a thread with longer ones (Linux 6.12: EEVDF with
/// custom slices, sched_setattr(2)). Returns whether the kernel accepted the request; older kernels do not,
/// and nothing else depends on it.
bool ask_for_slices(uint32_t us);

/// Yields the processor to a thread that waits for it, if there is one. A thread that works for a long time
/// calls this now and then, because the kernel preempts it only at clock ticks, which are milliseconds apart.
/// The cost depends on the slice: the kernel counts the rest of the slice as used.
void let_others_run();

} // namespace terrace::runtime
