#include "actors/tier/tier_quota.hpp"

#include "actors/tier/tier_round.hpp"

#include <numeric>

namespace terrace::actors {

quota_charge charge_of(tier_pointer self, const acquire_request& request, const residency::need& wanted) {
  auto* quotas = self->state.objects().quotas();
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
  next_round(self);
}

void unbook(tier_pointer self, const quota_charge& charge) {
  if (charge.tenant == tenant_id{})
    return;
  self->state.objects().quotas()->unbook(charge.tenant, charge.bytes);
}

void serve_quotas(tier_pointer self) {
  auto& state = self->state;
  if (!state.quota)
    return;
  if (!state.quota->idle())
    state.quota->changed();
  next_round(self);
}

void on_quotas_changed(tier_pointer self) {
  auto& state = self->state;
  if (!state.quota)
    return;
  state.objects().quotas()->refresh();
  settle(self); // shares may have become smaller: the policy learns what it may name again
  serve_quotas(self);
}

void sweep_quotas(tier_pointer self) {
  if (self->state.quota)
    self->state.quota->sweep();
  next_round(self);
}

void next_round(tier_pointer self) {
  auto& state = self->state;
  if (state.changes.in_round())
    return;
  if (state.next_round) {
    begin_round(self, std::exchange(state.next_round, nullptr));
    return;
  }
  if (!state.quota)
    return;
  if (auto wanted = state.quota->begin_round()) {
    auto round = std::make_shared<eviction_round>();
    round->ask_own(wanted->tenant, wanted->missing_bytes, wanted->wanted_bytes, wanted->inference);
    begin_round(self, std::move(round));
  }
}

void end_own_round(tier_pointer self, eviction_round& ended) {
  auto held = ended.held_by();
  settle(self, ended.take_freed());
  self->state.quota->end_round(held);
}

} // namespace terrace::actors
