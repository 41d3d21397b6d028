// Gives freed memory of the heap back to the kernel.
#pragma once

#include "base/keep_alive.hpp"
#include "memory/teardown.hpp"

namespace terrace {

/// When the last reference ends, all that has been freed by then goes back: on the thread of `by`, since it takes milliseconds, or at once
/// where that is null. Whatever should have been freed before holds one.
keep_alive trim_at_end(const teardown_ptr& by);

} // namespace terrace
