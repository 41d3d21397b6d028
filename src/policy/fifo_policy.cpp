#include "policy/fifo_policy.hpp"

namespace terrace {

void fifo_policy::insert(const entry_info& entry, policy_time) { tree_.insert(entry, {++arrivals_}); }

} // namespace terrace
