// Who runs on which processor. Left alone, the kernel at times puts a blocking echo's two processes on one processor,
// where a round trip needs no wake-up of another; a daemon and its engine are not so placed. Latencies are therefore
// compared with client and server on processors of their own, on both sides; the unplaced figures are reported beside.
#pragma once

#include <sys/types.h>

namespace terrace::bench {

/// Every thread of the process, on that processor alone.
void place(pid_t process, int processor);

/// Every thread of the process, on any processor.
void release(pid_t process);

} // namespace terrace::bench
