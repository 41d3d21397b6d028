// Processor time of another process.
#pragma once

#include <sys/types.h>

namespace terrace::bench {

/// What a process and all its threads have used, in seconds (nanosecond resolution).
double cpu_seconds_of(pid_t pid);

} // namespace terrace::bench
