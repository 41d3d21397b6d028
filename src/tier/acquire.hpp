// Hold what a tier has of these objects, and reserve space for the rest.
#pragma once

#include "base/error.hpp"
#include "tier/object_batch.hpp"
#include "tier/object_hold.hpp"
#include "tier/object_place.hpp"
#include "tier/object_reservation.hpp"
#include "tier/request_context.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

/// Hold what is published and reserve space for what is absent and `may_fill` (empty: everything may). Whole
/// or not at all: while it waits for memory it holds nothing, so two requests cannot wait for each other.
struct acquire_request {
  batch_ptr objects;
  std::vector<bool> may_fill;
  bool fill = true;     ///< false: reserve nothing, as if `may_fill` were all false
  bool may_wait = true; ///< false: `no_space` at once when eviction cannot make room now
  bool note_access = true;
  bool may_evict = true; ///< false: take what is free
  context_ptr context;   ///< may be null: a request of the daemon itself
};
enum class acquired_state : uint8_t {
  absent, ///< not there, and not to be filled (or gone since)
  held,
  reserved, ///< yours to write and publish
  pending,  ///< somebody else is writing it: `await_request`, then acquire again
};
struct acquire_answer {
  error failure;
  std::vector<acquired_state> states; ///< parallel to the keys
  std::vector<object_place> places;   ///< parallel; of held and reserved objects
  hold_ptr held;
  reservation_ptr reserved;
  uint64_t held_bytes = 0; ///< physical: of the tier, whoever holds them, this answer's among them
};

} // namespace terrace
