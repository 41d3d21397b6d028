#include "group/lease_registry.hpp"

namespace terrace {

void lease_registry::add(const lease_id& id, connection_id owner, std::weak_ptr<const lease> added) {
  if (!numbers_.emplace(id, last_number_ + 1).second)
    return;
  leases_.emplace_hint(leases_.end(), ++last_number_, entry{id, owner, std::move(added)});
  by_owner_[owner].insert(id);
}

lease_ptr lease_registry::known(const lease_id& id) const {
  auto number = numbers_.find(id);
  return number == numbers_.end() ? nullptr : leases_.at(number->second).what.lock();
}

lease_ptr lease_registry::find(const lease_id& id) const {
  auto found = known(id);
  return found && found->revoked.is_set() ? nullptr : found;
}

bool lease_registry::mark_revoked(const lease_id& id) {
  auto found = known(id);
  if (found)
    found->revoked.set();
  return found != nullptr;
}

void lease_registry::erase(const lease_id& id) {
  auto number = numbers_.find(id);
  leases_.erase(number->second);
  numbers_.erase(number);
}

void lease_registry::end(const lease_id& id, connection_id owner) {
  auto owned = by_owner_.find(owner);
  if (owned == by_owner_.end() || owned->second.erase(id) == 0)
    return;
  erase(id);
  if (owned->second.empty())
    by_owner_.erase(owned);
}

void lease_registry::end(connection_id owner) {
  auto owned = by_owner_.find(owner);
  if (owned == by_owner_.end())
    return;
  for (const lease_id& id : owned->second)
    erase(id);
  by_owner_.erase(owned);
}

std::vector<lease_registry::numbered_lease> lease_registry::next(uint64_t after, size_t count_max) const {
  std::vector<numbered_lease> part;
  for (auto at = leases_.upper_bound(after); at != leases_.end() && part.size() < count_max; ++at)
    part.push_back({at->first, at->second.id, at->second.owner, at->second.what.lock()});
  return part;
}

std::vector<std::string> lease_registry::check() const {
  size_t owned = 0;
  for (const auto& [owner, ids] : by_owner_)
    owned += ids.size();
  if (owned == leases_.size() && numbers_.size() == leases_.size())
    return {};
  return {"the trust group has " + std::to_string(leases_.size()) + " leases, " +
          std::to_string(numbers_.size()) + " by id and " + std::to_string(owned) + " by owner"};
}

std::vector<lease_report> lease_registry::list(uint64_t after, size_t count_max) const {
  std::vector<lease_report> listed;
  for (auto at = leases_.upper_bound(after); at != leases_.end() && listed.size() < count_max; ++at) {
    const auto& [number, one] = *at;
    lease_ptr lease = one.what.lock();
    if (!lease)
      continue; // its owner has ended it, and the notice of that is in flight
    lease_report report{one.id,
                        number,
                        one.owner,
                        {},
                        lease->chunks.size(),
                        0,
                        lease->bytes,
                        lease->taken,
                        lease->revoked.is_set()};
    if (lease->space) {
      report.space = lease->space->id;
      report.tokens = tokens_of(*lease);
    }
    listed.push_back(report);
  }
  return listed;
}

} // namespace terrace
