// Least recently used.
#pragma once

#include "policy/leaf_bands.hpp"

namespace terrace {

/// The rank is the stamp of the last use, in whatever tier it was. Near the best once a tier holds a fifth of what is
/// asked for.
class lru_policy : public leaf_bands {
 public:
  explicit lru_policy(const policy_context& context) : leaf_bands(context, 1) {}
};

} // namespace terrace
