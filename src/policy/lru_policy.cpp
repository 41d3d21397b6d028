#include "policy/lru_policy.hpp"

namespace terrace {

void lru_policy::insert(const entry_info& entry, policy_time now) {
  if (!tree_.insert(entry, {++uses_}))
    hit(entry.key, now);
}

void lru_policy::hit(entry_key key, policy_time) { tree_.set_rank(key, {++uses_}); }

} // namespace terrace
