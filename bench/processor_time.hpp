// Processor time of another process.
#pragma once

#include <sys/types.h>

namespace terrace::bench {

/// What a process and all its threads have used, in seconds (nanosecond resolution).
double cpu_seconds_of(pid_t pid);

/// The same, and what they have waited for a processor: a thread that always has something to do adds a second per second,
/// however many others there are.
double runnable_seconds_of(pid_t pid);

} // namespace terrace::bench
