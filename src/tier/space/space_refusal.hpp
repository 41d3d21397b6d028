// Classifies the refusal of a request for space in a tier, for counters.
#pragma once

#include "tier/messages.hpp"

namespace terrace {

enum class space_refusal : uint8_t {
  none, ///< nobody was refused: the requester comes again for less, has ended, or asked for something impossible
  prefetch, ///< it was ahead of demand, which goes last
  /// Eviction could have made room: too many requests wait for it, or the deadline passed before their turn.
  dropped,
  /// Eviction could not make room: leases, readers and transfers hold the rest, or the tier is smaller than
  /// the request.
  no_room,
};

/// `failure` is the answer to the request's space from the tier's allocator (tier/space/allocation_queue.hpp).
inline space_refusal refusal_of(const acquire_request& request, const error& failure) {
  bool ahead = request.context && request.context->ahead;
  bool live = !request.context || request.context->live();
  switch (failure.code) {
    case errc::no_space:
      if (ahead)
        return space_refusal::prefetch;
      return live && request.may_come_again ? space_refusal::none : space_refusal::no_room;
    case errc::busy: return ahead ? space_refusal::prefetch : space_refusal::dropped;
    case errc::deadline: return ahead ? space_refusal::none : space_refusal::dropped;
    default: return space_refusal::none;
  }
}

} // namespace terrace
