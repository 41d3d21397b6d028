// Processor time of another process.
#pragma once

#include <sys/types.h>

namespace terrace::bench {

/// Returns the processor time of a process with all its threads, in seconds (nanosecond resolution).
double cpu_seconds_of(pid_t pid);

/// Adds the time that the threads have waited for a processor: a thread that always has something to do adds
/// a second per second, however many others there are.
double runnable_seconds_of(pid_t pid);

} // namespace terrace::bench
