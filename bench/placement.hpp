// Who runs on which processor. Left alone, the kernel at times puts a blocking echo's two processes on one processor,
// where a round trip needs no wake-up of another; a daemon and its engine are not so placed. Latencies are therefore
// compared with client and server on processors of their own, on both sides; the unplaced figures are reported beside.
#pragma once

#include <sys/types.h>

#include <functional>

namespace terrace::bench {

/// Every thread of the process, on that processor alone.
void place(pid_t process, int processor);

/// The worker of the daemon, a thread, that works most while `busy` runs: the one that serves the connection in it.
pid_t busiest_worker(pid_t process, const std::function<void()>& busy);

/// Every thread of the process, on any processor.
void release(pid_t process);

} // namespace terrace::bench
