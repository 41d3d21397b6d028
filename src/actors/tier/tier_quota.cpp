
#include "actors/tier/tier_shell.hpp"

#include <numeric>

namespace terrace::actors {

quota_charge charge_of(tier_pointer self, const acquire_request& request, const residency::need& wanted) {
  auto* quotas = self->state.objects().shares().quotas();
  if (quotas == nullptr || wanted.sizes.empty())
    return {};
  quota_charge charge;
  // All objects have the same tenant.
  charge.tenant = quotas->tenant_of(request.objects->keys[wanted.objects.front()].space);
  if (charge.tenant != tenant_id{})
    charge.bytes = std::accumulate(wanted.sizes.begin(), wanted.sizes.end(), uint64_t{0});
  return charge;
}

void within_quota(tier_pointer self, const quota_charge& charge, const acquire_request& request,
                  std::function<void(const error&)> go_on) {
  self->state.quota->ask({charge.tenant, charge.bytes, request.may_wait, request.context}, std::move(go_on));
}

void unbook(tier_pointer self, const quota_charge& charge) {
  if (charge.tenant == tenant_id{})
    return;
  self->state.objects().shares().quotas()->unbook(charge.tenant, charge.bytes);
}

void serve_quotas(tier_pointer self) {
  auto& quota = self->state.quota;
  if (quota && !quota->idle())
    quota->changed();
}

void on_quotas_changed(tier_pointer self) {
  if (!self->state.quota)
    return;
  self->state.objects().shares().quotas()->refresh(); // shares may have become smaller
  serve_quotas(self);
}

std::shared_ptr<eviction_round> next_own_round(tier_pointer self) {
  auto& quota = self->state.quota;
  auto wanted = quota ? quota->begin_round() : std::nullopt;
  if (!wanted)
    return nullptr;
  auto round = std::make_shared<eviction_round>();
  round->ask_own(wanted->tenant, wanted->missing_bytes, wanted->wanted_bytes, wanted->inference);
  return round;
}

void end_own_round(tier_pointer self, eviction_round& ended) {
  self->state.changes.free(ended.take_freed());
  self->state.quota->end_round(ended.held_by());
}

} // namespace terrace::actors
