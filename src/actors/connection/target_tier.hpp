// The tier to which a prefetch or a move brings chunks.
#pragma once

#include "actors/connection/request.hpp"

namespace terrace::actors {

/// Whether chunks can be brought up to this tier now, which is host memory or a faster one; otherwise the request is refused.
bool can_bring_to(client_request& request, tier_kind to);

/// What comes into the tier may take so many bytes there, so that a chain does not evict its own beginning.
uint64_t room_to_bring(const group_parts& group, tier_kind to);

} // namespace terrace::actors
