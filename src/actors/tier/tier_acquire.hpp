#pragma once

#include "actors/tier/tier_shell.hpp"

namespace terrace::actors {

/// Reserves space for absent objects, which the allocator grants all at once; the answer may wait for
/// eviction.
caf::result<acquire_answer> on_acquire(tier_pointer self, const acquire_request& request);

} // namespace terrace::actors
