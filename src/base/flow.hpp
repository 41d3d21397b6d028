// Names the trust group and the connection for whom work is done.
#pragma once

#include <cstdint>

namespace terrace {

/// Fairness is between trust groups, and within a group between its connections (base/fair_queue.hpp). The
/// daemon's own work has connection 0, and group 0 if it is for no group.
struct flow {
  uint64_t group = 0;
  uint64_t connection = 0;
  friend bool operator==(const flow&, const flow&) = default;
};

} // namespace terrace
