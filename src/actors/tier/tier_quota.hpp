#pragma once

#include "actors/tier/tier_shell.hpp"

#include <functional>

namespace terrace::actors {

/// The tenant whose bound a request counts against, and the bytes; tenant 0: none.
struct quota_charge {
  tenant_id tenant{};
  uint64_t bytes = 0;
};
quota_charge charge_of(tier_pointer self, const acquire_request& request, const residency::need& wanted);

/// Continues, now or later, once the bytes are booked for the tenant, or with the error that refuses the
/// request. May evict objects of the tenant.
void within_quota(tier_pointer self, const quota_charge& charge, const acquire_request& request,
                  std::function<void(const error&)> go_on);

/// Called when booked bytes are charged, or not needed.
void unbook(tier_pointer self, const quota_charge& charge);

/// Called when something was freed or became evictable.
void serve_quotas(tier_pointer self);
/// Called when the quotas have changed.
void on_quotas_changed(tier_pointer self);

/// The next round for a tenant at its bound; null: none is needed.
std::shared_ptr<eviction_round> next_own_round(tier_pointer self);
/// Ends a round for a tenant.
void end_own_round(tier_pointer self, eviction_round& ended);

} // namespace terrace::actors
