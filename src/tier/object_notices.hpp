// What a tier is told about single objects, by their ids. An id that is not known any more is passed over.
#pragma once

#include "index/object_id.hpp"

#include <vector>

namespace terrace {

/// One hold of each ended (`object_hold`).
struct release_notice {
  std::vector<object_id> ids;
};

/// Reserved objects that will not be published (`object_reservation`).
struct abandon_notice {
  std::vector<object_id> ids;
};

/// Reserved objects that will not be published, and whose memory something still writes into: their keys are free at once,
/// their space when the reservation ends.
struct detach_notice {
  std::vector<object_id> ids;
};

/// These were found by probes that noted no use, and are used now, together: a chain's objects in its order.
struct access_notice {
  std::vector<object_id> ids;
};

/// An object's bytes turned out wrong or unreadable: it is never served again.
struct discard_notice {
  std::vector<object_id> ids;
};

} // namespace terrace
