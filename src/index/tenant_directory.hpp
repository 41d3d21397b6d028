// Which tenant a space belongs to, by its salt, and the quotas of tenants.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
#include "index/sha256.hpp"
#include "index/tenant_quota.hpp"

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

/// A salt that is listed is that tenant's; otherwise the rule with the longest matching beginning makes it a tenant of its
/// own. Spaces without a salt belong to nobody. A tenant keeps its number while the name of its quota stays.
///
/// Keeps no salt of a client: a digest, and the beginning that rules may compare. Safe on any thread.
class tenant_directory {
 public:
  static constexpr size_t rule_bytes_max = 128; ///< of the beginning of a salt, in a rule
  static constexpr size_t quotas_max = 256;

  /// Capacities by `tier_kind`; 0: the group has no such tier.
  using capacities = std::array<uint64_t, quota_tiers>;

  /// Replaces all quotas. Tiers learn of it by `tenant_quotas::refresh`.
  void set_quotas(std::vector<tenant_quota> quotas);
  std::vector<tenant_quota> quotas() const;

  /// Changes the quota with this name. Errors: `not_found`, listing the names; `bad_request` if the share exceeds the
  /// bound, or all shares together the tier.
  result<void> change(std::string_view name, tier_kind tier, const quota_change& what,
                      const capacities& tiers);

  /// A space was opened; `salt` is that of its spec.
  void opened(space_id space, std::string_view salt);
  void forgotten(std::span<const space_id> spaces);

  /// None: nobody has opened it yet, so the tenant is not known. 0: it belongs to nobody.
  std::optional<tenant_id> tenant_of(space_id space) const;

  struct terms {
    tenant_id tenant{};
    std::string name;    ///< of the quota
    uint32_t number = 0; ///< of a tenant by rule, from 1; 0: the tenant is listed
    tier_quota quota;
  };
  /// Nullopt: there is no such tenant any more.
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
    size_t quota = 0; ///< index
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
  std::vector<digest> listed_;                  ///< parallel: the salt's digest; empty of a rule
  std::unordered_map<uint32_t, digest> spaces_; ///< those with a salt, by number; an empty digest: without
  std::map<digest, salted> salts_;
  std::map<tenant_id, tenant> tenants_;
  std::map<identity, tenant_id> known_;
  std::map<std::string, uint32_t> numbers_; ///< the last one of each rule
  uint32_t last_ = 0;
};

/// Whether the shares of these quotas fit into a tier, each rule counted once, and none exceeds its own bound. Errors:
/// `bad_request`.
result<void> check_shares(std::span<const tenant_quota> quotas, tier_kind tier, uint64_t capacity);

} // namespace terrace
