#include "tier/objects/tier_check.hpp"

#include <algorithm>

namespace terrace {

std::string text_of(const object_key& key) {
  return "space " + std::to_string(static_cast<uint32_t>(key.space)) + ", pool " + std::to_string(key.pool) +
         ", rank " + std::to_string(key.rank) + ", chunk " + to_hex(key.chunk, 8);
}

namespace {

std::string object_text(const checked_object& object) { return "the object of " + text_of(object.key); }

std::string extent_text(const extent& place) {
  return std::to_string(place.size) + " bytes at " + std::to_string(place.offset);
}

/// The policy is told that an object has to stay because somebody holds it, because it is written to a tier below, or
/// because its tenant is guaranteed a share.
bool stays_without_reason(const residency& objects, const resident& object) {
  if (!object.pinned() || object.holds() != 0 || object.state() != object_state::published)
    return false;
  tenant_quotas* quotas = objects.shares().quotas();
  const tenant_shield* shield =
      quotas == nullptr ? nullptr : quotas->shield_of(quotas->charged(object.key().space));
  return shield == nullptr || shield->empty();
}

checked_object describe_slot(const resident_table& table, const table_recount& walk, uint32_t slot) {
  const resident& object = table.at_slot(slot);
  checked_object out;
  out.id = table.id_at(slot);
  out.key = object.key();
  out.place = {object.offset(), object.physical_bytes()};
  out.published = readable(object.state());
  out.pinned = object.pinned();
  out.holds = object.holds();
  out.touched = walk.touched(slot);
  return out;
}

} // namespace

bool check_index(residency& objects, checked_slice& into, std::vector<std::string>& differences) {
  const resident_table& table = objects.table();
  const table_recount& walk = *objects.recount().walk();
  uint32_t first = walk.next();
  bool more = objects.recount().step(check_slots);
  for (uint32_t slot = first; slot < walk.next(); ++slot) {
    if (table.at_slot(slot).state() == object_state::free)
      continue;
    into.objects.push_back(describe_slot(table, walk, slot));
    if (stays_without_reason(objects, table.at_slot(slot)))
      differences.push_back(object_text(into.objects.back()) +
                            " has 0 holds, and the policy was told that it has to stay");
    if (!table.indexed_rightly(slot))
      differences.push_back(object_text(into.objects.back()) + " is in slot " + std::to_string(slot) +
                            (table.at_slot(slot).state() == object_state::removed
                                 ? ", and the index still leads there although it was removed"
                                 : ", and the index does not lead there"));
  }
  return more;
}

std::vector<std::string> check_totals(residency& objects) {
  const table_totals& counted = objects.recount().walk()->totals();
  auto all = differences_of(counted, objects.table().totals());
  if (const tenant_quotas* quotas = objects.shares().quotas())
    for (std::string& one : quotas->check(counted))
      all.push_back(std::move(one));
  return all;
}

std::vector<std::string> check_policy(const eviction_tracker& policy, const checked_slice& slice) {
  std::vector<std::string> all;
  auto tier = static_cast<tier_number>(slice.tier);
  if (policy.policy(tier).empty())
    return all; // no object of it is tracked
  for (const checked_object& object : slice.objects) {
    entry_key name = to_entry_key(object.key);
    bool known = policy.resident(tier, name);
    if (object.published && !known) {
      all.push_back(object_text(object) + " can be found, and the policy does not know it");
      continue;
    }
    // The total tells of objects that the policy knows beyond these: the name of a removed object may be its
    // successor's.
    if (!object.published)
      continue;
    if (bool pinned = policy.pinned(tier, name); pinned != object.pinned)
      all.push_back(object_text(object) + " has " + std::to_string(object.holds) +
                    " holds, and the policy knows it as " + (pinned ? "pinned" : "not pinned") +
                    (object.pinned ? ", although it was told" : ", although it was not told"));
  }
  if (size_t residents = policy.residents(tier); residents != slice.published_in_all)
    all.push_back("the policy knows " + std::to_string(residents) + " objects, and lookups find " +
                  std::to_string(slice.published_in_all));
  return all;
}

std::vector<std::string> check_extents(const allocator& space, const checked_slice& slice) {
  std::vector<std::string> all;
  for (const checked_object& object : slice.objects) {
    uint64_t live = space.live_size(object.place.offset);
    if (live == 0)
      all.push_back(object_text(object) + " has " + extent_text(object.place) +
                    ", which are free for the allocator");
    else if (live != object.place.size)
      all.push_back(object_text(object) + " has " + extent_text(object.place) +
                    ", where the allocator gave " + std::to_string(live));
  }
  return all;
}

std::vector<std::string> check_space_totals(const allocator_usage& usage, const checked_slice& slice,
                                            const table_totals::sum& granted) {
  std::vector<std::string> all;
  uint64_t extents = slice.extents_in_all + granted.objects, bytes = slice.bytes_in_all + granted.bytes;
  if (usage.allocations != extents || usage.used_bytes != bytes)
    all.push_back("the allocator gave out " + std::to_string(usage.allocations) + " extents with " +
                  std::to_string(usage.used_bytes) + " bytes, and the objects have " +
                  std::to_string(extents) + " with " + std::to_string(bytes));
  return all;
}

} // namespace terrace
