#include "connection/lease_registry.hpp"

namespace terrace {

void lease_registry::add(const lease_id& id, connection_id owner, std::weak_ptr<const lease> added) {
  leases_.emplace(id, std::move(added));
  by_owner_[owner].insert(id);
}

lease_ptr lease_registry::find(const lease_id& id) const {
  auto entry = leases_.find(id);
  return entry == leases_.end() ? nullptr : entry->second.lock();
}

void lease_registry::end(const lease_id& id, connection_id owner) {
  auto entry = leases_.find(id);
  auto owned = by_owner_.find(owner);
  if (entry == leases_.end() || owned == by_owner_.end() || owned->second.erase(id) == 0)
    return;
  leases_.erase(entry);
  if (owned->second.empty())
    by_owner_.erase(owned);
}

void lease_registry::end(connection_id owner) {
  auto owned = by_owner_.find(owner);
  if (owned == by_owner_.end())
    return;
  for (const lease_id& id : owned->second)
    leases_.erase(id);
  by_owner_.erase(owned);
}

} // namespace terrace
