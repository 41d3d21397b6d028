// Measures the hits that other policies and capacities would have had on the requests of a trust group.
//
// Pure: used by one thread at a time.
#pragma once

#include "policy/shadow_cache.hpp"
#include "tier/policy/open_inferences.hpp"
#include "tier/policy/policy_clock.hpp"
#include "tier/policy/policy_messages.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace terrace {

struct shadow_plan {
  std::string policy; ///< one of `eviction_policy_names` (asserted: settings were validated)
  uint64_t capacity_bytes = 0;
};

class shadow_policies {
 public:
  /// `seed` is that of the real host tier.
  shadow_policies(const std::vector<shadow_plan>& plans, policy_clock clock, uint64_t seed);

  /// Records an access to a chain. Only the first access of an inference counts.
  void use(const shadow_use& what);
  void end(const inference_end& ended);
  void clear(const shadow_clear& what);

  /// One cache per plan, in order.
  const std::vector<std::unique_ptr<shadow_cache>>& caches() const { return caches_; }
  shadow_report report() const;

 private:
  std::vector<std::unique_ptr<shadow_cache>> caches_;
  open_inferences inferences_; ///< all caches number their requests alike
  policy_clock clock_;
};

/// Returns the objects of an access as the shadows count them, root first. States of trailing pools are
/// omitted, because nobody knows which of them a client would have stored. Their keys are the shadows' own
/// and contain the space.
std::vector<entry_info> entries_of(const shadow_use& use);
bool is_of(space_id space, entry_key key);

} // namespace terrace
