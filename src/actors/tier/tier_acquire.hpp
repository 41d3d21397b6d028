#pragma once

#include "actors/tier/tier_shell.hpp"

namespace terrace::actors {

/// Space for what is not here, in places that the allocator grants all at once; the answer may wait for eviction.
caf::result<acquire_answer> on_acquire(tier_pointer self, const acquire_request& request);

} // namespace terrace::actors
