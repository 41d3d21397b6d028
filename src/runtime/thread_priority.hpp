// The scheduling priority of a thread.
#pragma once

namespace terrace::runtime {

/// Lowers the calling thread's priority: its nice value becomes `nice`, 0 to 19; 0 leaves it as it is. A thread of a lower
/// priority gets less of a processor that others want as well, and all of it otherwise. Linux: nice belongs to a thread.
void be_nice(int nice);

} // namespace terrace::runtime
