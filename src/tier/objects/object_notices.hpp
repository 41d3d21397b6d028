// Notices to a tier about single objects, by id. Unknown ids are ignored.
#pragma once

#include "index/object_id.hpp"

#include <vector>

namespace terrace {

/// One hold of each of these objects has ended (`object_hold`).
struct release_notice {
  std::vector<object_id> ids;
};

/// Reserved objects that will not be published (`object_reservation`).
struct abandon_notice {
  std::vector<object_id> ids;
};

/// Reserved objects that will not be published, and whose memory is still being written: their keys become
/// free immediately, their space when the reservation ends.
struct detach_notice {
  std::vector<object_id> ids;
};

/// Objects that were found by probes without recording an access, and are accessed now, together: a chain's
/// objects in order.
struct access_notice {
  std::vector<object_id> ids;
};

enum class discard_reason : uint8_t {
  damaged,  ///< its bytes are wrong or unreadable
  unusable, ///< other ranks of its chunk are missing and will not come
  unwanted, ///< an operator evicts it
  moved,    ///< a tier below has it; the object stays if anybody but the sender holds it
};

/// These objects are never served again.
struct discard_notice {
  std::vector<object_id> ids;
  discard_reason why = discard_reason::damaged;
};

} // namespace terrace
