// Who runs on which processor. Left alone, the kernel at times puts a blocking echo's two processes on one processor,
// where a round trip needs no wake-up of another; a daemon and its engine are not so placed. Latencies are therefore
// compared with client and server on processors of their own, on both sides; the unplaced figures are reported beside.
#pragma once

#include <sys/types.h>

namespace terrace::bench {

/// Every thread of the process, on that processor alone.
void place(pid_t process, int processor);

/// The thread of the process that has used most processor time so far, such as the worker that heavy clients keep at
/// work, on one processor, and its other threads on another.
void place_busiest(pid_t process, int busiest, int other);

/// Every thread of the process, on any processor.
void release(pid_t process);

} // namespace terrace::bench
