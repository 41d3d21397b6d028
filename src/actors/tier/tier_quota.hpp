#pragma once

#include "actors/tier/tier_shell.hpp"

#include <functional>

namespace terrace::actors {

/// Whose bound a request counts against, and by how much; tenant 0: nobody's.
struct quota_charge {
  tenant_id tenant{};
  uint64_t bytes = 0;
};
quota_charge charge_of(tier_pointer self, const acquire_request& request, const residency::need& wanted);

/// Continues, now or later, once the bytes are booked for the tenant, or with the error that refuses the request. May evict
/// objects of the tenant.
void within_quota(tier_pointer self, const quota_charge& charge, const acquire_request& request,
                  std::function<void(const error&)> go_on);

/// What was booked is charged, or not needed.
void unbook(tier_pointer self, const quota_charge& charge);

/// Something was freed or became evictable.
void serve_quotas(tier_pointer self);
/// The quotas have changed.
void on_quotas_changed(tier_pointer self);
/// A request has ended.
void sweep_quotas(tier_pointer self);

/// Begins the next round, if none is in progress: the allocator's, or that of a tenant at its bound.
void next_round(tier_pointer self);
/// A round for a tenant is over.
void end_own_round(tier_pointer self, eviction_round& ended);

} // namespace terrace::actors
