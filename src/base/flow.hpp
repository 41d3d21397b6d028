// Whom work is for.
#pragma once

#include <cstdint>

namespace terrace {

/// Fairness is between trust groups, and within a group between its connections (base/fair_queue.hpp). Work of
/// the daemon itself has connection 0; without a group, group 0.
struct flow {
  uint64_t group = 0;
  uint64_t connection = 0;
  friend bool operator==(const flow&, const flow&) = default;
};

} // namespace terrace
