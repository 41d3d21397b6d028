#include "group/lease_registry.hpp"

#include <algorithm>
#include <cassert>
#include <string>

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

result<lease_ptr> pin_registry::add(const lease_ptr& lease, const digest& prompt, uint64_t bytes_max) {
  name of{lease->space->id, prompt};
  auto known = pins_.find(of);
  uint64_t others = bytes_ - (known == pins_.end() ? 0 : known->second->bytes);
  if (lease->bytes > bytes_max - std::min(bytes_max, others))
    return fail(errc::no_space, "the prompt has " + std::to_string(lease->bytes) + " bytes, and pins hold " +
                                    std::to_string(others) + "; expected at most " +
                                    std::to_string(bytes_max) + " together (lease.pin_percent); unpin some");
  if (known == pins_.end() && pins_.size() >= pins_max)
    return fail(errc::busy,
                std::to_string(pins_.size()) + " prompts are pinned, as many as may be; unpin some");
  lease_ptr replaced = known == pins_.end() ? nullptr : take(known);
  bytes_ += lease->bytes;
  pins_.emplace(of, lease);
  assert(pins_.size() <= pins_max && bytes_ <= bytes_max);
  return replaced;
}

lease_ptr pin_registry::take(std::map<name, lease_ptr>::iterator at) {
  lease_ptr taken = std::move(at->second);
  pins_.erase(at);
  bytes_ -= taken->bytes;
  return taken;
}

lease_ptr pin_registry::remove(space_id space, const digest& prompt) {
  auto known = pins_.find({space, prompt});
  return known == pins_.end() ? nullptr : take(known);
}

bool pin_registry::has(const lease_id& id) const {
  return std::any_of(pins_.begin(), pins_.end(), [&](const auto& one) { return one.second->id == id; });
}

lease_ptr pin_registry::remove(const lease_id& id) {
  auto known =
      std::find_if(pins_.begin(), pins_.end(), [&](const auto& one) { return one.second->id == id; });
  return known == pins_.end() ? nullptr : take(known);
}

} // namespace terrace
