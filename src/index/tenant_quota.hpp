// What an operator allows tenants in each tier.
#pragma once

#include "base/ids.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace terrace {

/// Identifies a tenant within one trust group and one boot of the daemon; 0: none, whose use has no bounds.
enum class tenant_id : uint32_t {};

/// Bytes, or percent of a tier.
struct quota_part {
  uint64_t value = 0;
  bool percent = false;

  uint64_t bytes_of(uint64_t capacity) const {
    return percent ? capacity / 100 * value + capacity % 100 * value / 100 : value;
  }
  friend bool operator==(const quota_part&, const quota_part&) = default;
};

struct tier_quota {
  std::optional<quota_part> max; ///< a hard upper bound; absent: none
  quota_part guaranteed;         ///< eviction for others takes the tenant no further down
  friend bool operator==(const tier_quota&, const tier_quota&) = default;
};

constexpr size_t quota_tiers = 4; ///< numbers of `tier_kind`

/// Of one tenant, or of all whose salt begins in a certain way. The salt is a secret of the tenant: what is shown is the
/// name.
struct tenant_quota {
  std::string name;
  std::string salt;  ///< of the tenant; of a rule, the beginning of the salts, or empty
  bool rule = false; ///< each matching salt is a tenant of its own with these bounds
  std::array<tier_quota, quota_tiers> tiers; ///< by `tier_kind`

  const tier_quota& in(tier_kind tier) const { return tiers.at(static_cast<size_t>(tier)); }
  tier_quota& in(tier_kind tier) { return tiers.at(static_cast<size_t>(tier)); }
  friend bool operator==(const tenant_quota&, const tenant_quota&) = default;
};

/// What the operator changes of one tier; absent members stay.
struct quota_change {
  std::optional<quota_part> max;
  std::optional<quota_part> guaranteed;
  bool unlimited = false; ///< there is no upper bound any more
};

} // namespace terrace
