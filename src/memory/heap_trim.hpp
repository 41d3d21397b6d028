// Gives freed memory of the heap back to the kernel.
#pragma once

#include "base/keep_alive.hpp"
#include "memory/teardown.hpp"

namespace terrace {

/// Returns a reference to hold until memory is freed. When the last one ends, all memory freed by then goes
/// back to the kernel: on the thread of `by`, since it takes milliseconds, or at once where `by` is null.
keep_alive trim_at_end(const teardown_ptr& by);

} // namespace terrace
