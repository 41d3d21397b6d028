// Least recently used.
#pragma once

#include "policy/leaf_bands.hpp"

namespace terrace {

/// The rank is the stamp of the last access, in any tier. Close to the best policy once a tier holds a fifth
/// of the working set.
class lru_policy : public leaf_bands {
 public:
  explicit lru_policy(const policy_context& context) : leaf_bands(context, 1) {}
};

} // namespace terrace
