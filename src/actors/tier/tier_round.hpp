#pragma once

#include "actors/tier/tier_shell.hpp"

namespace terrace::actors {

/// A round of eviction: the policy names victims until the allocator has the room that it asks for.
void on_room_request(tier_pointer self, const room_request& request);

/// Precondition: none is in progress.
void begin_round(tier_pointer self, std::shared_ptr<eviction_round> round);

} // namespace terrace::actors
