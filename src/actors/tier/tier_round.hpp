#pragma once

#include "actors/tier/tier_shell.hpp"

namespace terrace::actors {

/// A round of eviction: the policy names victims until the allocator, or a tenant at its bound, has the room that it asks
/// for. Takes the next step, after the news of the turn were sent: so the policy is up to date when it is asked, and for
/// whoever gets the space. Returns true if there may be more news and another step.
bool step_round(tier_pointer self);

} // namespace terrace::actors
