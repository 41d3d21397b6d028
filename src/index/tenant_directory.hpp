// The bounds that an operator sets for tenants in each tier, and which tenant a space belongs to, by the space's salt.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/tier_properties.hpp"
#include "index/sha256.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

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

/// A salt that is listed belongs to that tenant; otherwise the rule with the longest matching beginning makes
/// the salt a tenant of its own. Spaces without a salt belong to no tenant. A tenant keeps its number while
/// the name of its quota stays.
///
/// The directory keeps no client's salt, only a digest of it and the beginning that rules may compare. Safe
/// on any thread.
class tenant_directory {
 public:
  static constexpr size_t rule_bytes_max = 128; ///< longest beginning of a salt in a rule
  static constexpr size_t quotas_max = 256;

  /// Capacities by `tier_kind`; 0: the group has no such tier.
  using capacities = std::array<uint64_t, quota_tiers>;

  /// Replaces all quotas. Tiers notice it in `tenant_quotas::refresh`.
  void set_quotas(std::vector<tenant_quota> quotas);
  std::vector<tenant_quota> quotas() const;

  /// Changes the quota with this name. Errors: `not_found`, listing the names; `bad_request` if the share
  /// exceeds its bound, or all shares together exceed the tier.
  result<void> change(std::string_view name, tier_kind tier, const quota_change& what,
                      const capacities& tiers);

  /// A client opened a space; `salt` is that of its spec.
  void opened(space_id space, std::string_view salt);
  void forgotten(std::span<const space_id> spaces);

  /// Nullopt: nobody has opened the space yet, so its tenant is not known. 0: it belongs to no tenant.
  std::optional<tenant_id> tenant_of(space_id space) const;

  struct terms {
    tenant_id tenant{};
    std::string name;    ///< name of the quota
    uint32_t number = 0; ///< the tenant's number within its rule, from 1; 0: the tenant is listed
    tier_quota quota;
  };
  /// Nullopt: the tenant no longer exists.
  std::optional<terms> terms_of(tenant_id tenant, tier_kind tier) const;
  /// The listed tenants, and the rules as tenant 0, in the order of the quotas.
  std::vector<terms> listed(tier_kind tier) const;

 private:
  struct salted {
    std::string beginning;
    size_t spaces = 0;
    tenant_id tenant{};
  };
  struct tenant {
    std::string name;
    uint32_t number = 0;
    size_t quota = 0; ///< index of its quota
    digest salt;
  };
  using identity = std::pair<std::string, digest>;

  digest digest_of(std::string_view salt);
  std::optional<size_t> match(const digest& salt, std::string_view beginning) const;
  tenant_id enter(size_t quota, const digest& salt);
  void leave(const digest& salt, const salted& known);

  mutable std::mutex mutex_;
  sha256 hasher_;
  std::vector<tenant_quota> quotas_;
  std::vector<digest> listed_; ///< parallel to `quotas_`: the digest of a listed salt, empty for a rule
  /// the digest of each space's salt, by number; empty: the space has no salt
  std::unordered_map<uint32_t, digest> spaces_;
  std::map<digest, salted> salts_;
  std::map<tenant_id, tenant> tenants_;
  std::map<identity, tenant_id> known_;
  std::map<std::string, uint32_t> numbers_; ///< the last number given by each rule
  uint32_t last_ = 0;
};

/// Checks that the shares of these quotas fit into a tier, counting each rule once, and that none exceeds its
/// own bound. Errors: `bad_request`.
result<void> check_shares(std::span<const tenant_quota> quotas, tier_kind tier, uint64_t capacity);

} // namespace terrace
