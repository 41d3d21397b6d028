// The tenants of a tier: which objects stay because of a guaranteed share, and which leave because of a bound.
#pragma once

#include "tier/messages.hpp"
#include "tier/objects/tier_objects.hpp"
#include "tier/quota/tenant_quotas.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

namespace terrace {

/// Part of a residency. Pure; used by one thread at a time.
class tenant_shares {
 public:
  explicit tenant_shares(tier_objects& objects) : objects_(objects) {}

  /// From now on objects are charged to their tenants, beginning with those that are in the tier now.
  void charge(std::shared_ptr<tenant_quotas> quotas);
  tenant_quotas* quotas() const { return quotas_.get(); } ///< null: tenants have no quotas

  /// Removes victims from `named` that have to stay because their tenant would fall below its share, unless it is
  /// `maker`, for whom room is made. The policy is told that they are pinned. Returns true if any was removed.
  bool keep(victim_answer& named, tenant_id maker);
  /// Lets the policy name shielded objects of the tenant again, the first `bytes` of them.
  void unshield(tenant_id tenant, uint64_t bytes);
  /// Does the same for tenants that took more than their share since the last call.
  void unshield_grown();
  /// Does the same for all tenants that have more than their share. Returns false if there is no such object.
  bool unshield_all_beyond();

  /// Removes victims from `named` that do not belong to the tenant, cannot be evicted, or were published
  /// since `watch_new`: the policy may have named an earlier object with the same key.
  void keep_only_of(tenant_id tenant, victim_answer& named);
  void watch_new() { fresh_.emplace(); }
  void published(entry_key name);

 private:
  void let_be_named(const std::vector<object_id>& ids);
  uint64_t live_bytes(object_id id) const;

  tier_objects& objects_;
  std::shared_ptr<tenant_quotas> quotas_;
  /// Objects published since `watch_new`; nullopt: nobody asks.
  std::optional<std::unordered_set<entry_key>> fresh_;
};

} // namespace terrace
