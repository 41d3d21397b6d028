// The bounds that an operator sets for tenants in each tier.
#pragma once

#include "base/ids.hpp"
#include "base/tier_properties.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace terrace {

/// Identifies a tenant within one trust group and one boot of the daemon; 0: none, whose use has no bounds.
enum class tenant_id : uint32_t {};

/// An amount in bytes, or in percent of a tier.
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
  quota_part guaranteed;         ///< eviction for others does not go below this
  friend bool operator==(const tier_quota&, const tier_quota&) = default;
};

constexpr size_t quota_tiers = tier_kinds;

/// The quota of one tenant, or of every tenant whose salt begins in a certain way. The salt is a secret of
/// the tenant: only the name is shown.
struct tenant_quota {
  std::string name;
  std::string salt;  ///< the tenant's salt; for a rule, the beginning of the salts, or empty
  bool rule = false; ///< each matching salt is a tenant of its own with these bounds
  std::array<tier_quota, quota_tiers> tiers; ///< by `tier_kind`

  const tier_quota& in(tier_kind tier) const { return tiers.at(static_cast<size_t>(tier)); }
  tier_quota& in(tier_kind tier) { return tiers.at(static_cast<size_t>(tier)); }
  friend bool operator==(const tenant_quota&, const tenant_quota&) = default;
};

/// The operator's change to one tier; absent members stay.
struct quota_change {
  std::optional<quota_part> max;
  std::optional<quota_part> guaranteed;
  bool unlimited = false; ///< removes the upper bound
};

} // namespace terrace
