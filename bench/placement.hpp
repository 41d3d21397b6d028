// Places threads on processors. Left alone, the kernel at times puts a blocking echo's two processes on one
// processor, where a round trip needs no wake-up of another; a daemon and its engine are not placed like
// that. Latencies are therefore compared with client and server on separate processors, on both sides; the
// unplaced figures are reported as well.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string_view>

namespace terrace::bench {

/// Places every thread of the process on that processor alone.
void place(pid_t process, int processor);

/// Places the threads whose names begin so.
void place_named(pid_t process, std::string_view name, int processor);
void place_this_thread(int processor);

/// Returns the worker thread of the daemon that works most while `busy` runs: the one that serves the
/// connection in it.
pid_t busiest_worker(pid_t process, const std::function<void()>& busy);

/// Allows every thread of the process on any processor.
void release(pid_t process);

} // namespace terrace::bench
