// Holds those of the requested objects that a tier has, and reserves space for the rest.
#pragma once

#include "base/error.hpp"
#include "base/request_context.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/objects/object_place.hpp"
#include "tier/objects/object_reservation.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace terrace {

/// Holds published objects and reserves space for absent ones with `may_fill` (empty: all). All or nothing: a
/// request that waits for memory holds nothing, so two requests cannot deadlock.
struct acquire_request {
  batch_ptr objects;
  std::vector<bool> may_fill;
  bool fill = true;     ///< false: reserve nothing, as if `may_fill` were all false
  bool may_wait = true; ///< false: `no_space` at once if eviction cannot make room now
  bool note_access = true;
  /// Replaces published objects with these keys: they are removed in the turn that reserves space for the new
  /// ones, and found until then. Objects that others are writing stay `pending`.
  bool replace = false;
  bool may_come_again =
      false; ///< after `no_space` the requester asks for less, or is content without: nobody is refused yet
  context_ptr context; ///< null for a request of the daemon itself
};
enum class acquired_state : uint8_t {
  absent, ///< not present, and not to be filled (or evicted since)
  held,
  reserved, ///< for the caller to write and publish
  pending,  ///< being written by another request: send `await_request`, then acquire again
};
struct acquire_answer {
  error failure;
  std::vector<acquired_state> states; ///< parallel to the keys
  std::vector<object_place> places;   ///< parallel; set for held and reserved objects
  hold_ptr held;
  reservation_ptr reserved;
  uint64_t held_bytes = 0; ///< physical bytes of the tier that anybody holds, this answer included

  bool any(acquired_state what) const {
    return std::find(states.begin(), states.end(), what) != states.end();
  }
};

} // namespace terrace
