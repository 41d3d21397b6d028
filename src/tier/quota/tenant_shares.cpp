#include "tier/quota/tenant_shares.hpp"

#include <unordered_map>

namespace terrace {

void tenant_shares::charge(std::shared_ptr<tenant_quotas> quotas) {
  quotas_ = std::move(quotas);
  objects_.table().measured_by(quotas_);
}

uint64_t tenant_shares::live_bytes(object_id id) const {
  const resident* object = objects_.table().get(id);
  return object == nullptr || object->state() != object_state::published ? 0 : object->physical_bytes();
}

bool tenant_shares::keep(victim_answer& named, tenant_id maker) {
  if (!quotas_ || !quotas_->guarantees())
    return false;
  struct losing {
    uint64_t bytes = 0;
    bool stays = false; ///< one object had to stay, and those named behind it may be its ancestors
  };
  std::unordered_map<uint32_t, losing> tenants;
  return named.keep_only([&](entry_key victim, entry_key) {
    auto id = objects_.table().find(victim);
    const resident* object = id ? objects_.table().get(*id) : nullptr;
    tenant_id tenant = object != nullptr ? quotas_->charged(object->key().space) : tenant_id{};
    if (tenant == tenant_id{} || tenant == maker || object->state() != object_state::published)
      return true;
    losing& of = tenants[static_cast<uint32_t>(tenant)];
    of.stays = of.stays || !quotas_->may_lose(tenant, object->physical_bytes(), of.bytes);
    if (of.stays) {
      quotas_->shield_of(tenant)->add(*id, [&](object_id other) { return live_bytes(other); });
      objects_.pin(*id);
    } else {
      of.bytes += object->physical_bytes();
    }
    return !of.stays;
  });
}

/// Objects that are held are unpinned with their last hold.
void tenant_shares::let_be_named(const std::vector<object_id>& ids) {
  for (object_id id : ids)
    if (objects_.table().get(id)->holds() == 0)
      objects_.unpin(id);
}

void tenant_shares::unshield(tenant_id tenant, uint64_t bytes) {
  tenant_shield* shield = quotas_ ? quotas_->shield_of(tenant) : nullptr;
  if (shield == nullptr || shield->empty())
    return;
  std::vector<object_id> ids;
  shield->take(bytes, ids, [&](object_id id) { return live_bytes(id); });
  let_be_named(ids);
}

void tenant_shares::unshield_grown() {
  if (!quotas_)
    return;
  for (const auto& [tenant, bytes] : quotas_->take_grown())
    unshield(tenant, bytes);
}

bool tenant_shares::unshield_all_beyond() {
  if (!quotas_)
    return false;
  auto beyond = quotas_->beyond_shares();
  for (const auto& [tenant, bytes] : beyond)
    unshield(tenant, bytes);
  return !beyond.empty();
}

void tenant_shares::published(entry_key name) {
  if (fresh_)
    fresh_->insert(name);
}

void tenant_shares::keep_only_of(tenant_id tenant, victim_answer& named) {
  named.keep_only([&](entry_key victim, entry_key) {
    const resident* object = objects_.named(victim);
    return object != nullptr && object->holds() == 0 && object->state() == object_state::published &&
           quotas_->charged(object->key().space) == tenant && !(fresh_ && fresh_->contains(victim));
  });
  fresh_.reset();
}

} // namespace terrace
