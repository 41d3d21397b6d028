#include "tier/objects/object_departures.hpp"

#include <algorithm>
#include <cassert>
#include <unordered_set>

namespace terrace {

namespace {
bool is_demoting(const resident* object) {
  return object != nullptr && object->state() == object_state::demoting;
}
} // namespace

bool object_departures::keep_held(victim_answer& named) {
  std::unordered_set<entry_key> above; // of those that stay
  return named.keep_only([&](entry_key victim, entry_key next) {
    auto id = objects_.table().find(victim);
    const resident* object = id ? objects_.table().get(*id) : nullptr;
    const bool stays = object != nullptr && readable(object->state()) && !may_leave(object);
    const bool under_another = above.contains(victim);
    if (stays && !under_another)
      objects_.pin(*id);
    if (stays || under_another)
      above.insert(next);
    return !stays && !under_another;
  });
}

object_departures::offer object_departures::offered(const std::vector<entry_key>& victims) const {
  offer answer;
  for (size_t i = 0; i < victims.size(); ++i) {
    const resident* object = objects_.named(victims[i]);
    if (!may_leave(object))
      continue;
    answer.extents.push_back(extent_of(*object));
    answer.victims.push_back(i);
  }
  return answer;
}

/// Removes the object; its extent belongs to the caller.
extent object_departures::drop(object_id id, note_kind why) {
  const resident& object = *objects_.table().get(id);
  extent freed = extent_of(object);
  objects_.note_departure(why, object, why == note_kind::evict ? miss_reason::evicted : miss_reason::retired);
  if (auto* durable = objects_.durable())
    durable->removed(objects_.table(), id);
  objects_.table().erase(id);
  ++evictions;
  return freed;
}

object_departures::eviction object_departures::evict(const std::vector<entry_key>& victims) {
  eviction answer;
  for (entry_key name : victims) {
    auto id = objects_.table().find(name);
    const resident* object = id ? objects_.table().get(*id) : nullptr;
    if (may_leave(object)) {
      answer.freed.push_back(drop(*id, note_kind::evict));
      continue;
    }
    // The policy is told again, because two objects may share a name, and a refused victim must not be
    // proposed forever.
    if (object != nullptr && readable(object->state()))
      objects_.pin(*id);
    else
      objects_.tell({note_kind::erase, name, {}, 0});
    ++answer.refused;
  }
  return answer;
}

std::vector<object_id> object_departures::begin_demotion(const std::vector<entry_key>& victims) {
  std::vector<object_id> ids(victims.size());
  for (size_t i = 0; i < victims.size(); ++i) {
    auto id = objects_.table().find(victims[i]);
    if (!id || !may_leave(objects_.table().get(*id)))
      continue;
    objects_.table().demote(*id);
    ids[i] = *id;
  }
  return ids;
}

object_departures::eviction object_departures::evict_demoted(const std::vector<entry_key>& victims,
                                                             const std::vector<object_id>& ids) {
  assert(victims.size() == ids.size());
  eviction answer;
  for (size_t i = 0; i < victims.size(); ++i) {
    const resident* object = objects_.table().get(ids[i]);
    if (is_demoting(object) && object->holds() == 0) {
      answer.freed.push_back(drop(ids[i], note_kind::evict));
      continue;
    }
    if (is_demoting(object))
      stays(ids[i]); // it is being written for another reason as well
    // As in `evict`. Another object with this name may be there by now: it was not written, and is proposed again.
    ++answer.refused;
    auto id = objects_.table().find(victims[i]);
    const resident* there = id ? objects_.table().get(*id) : nullptr;
    if (there == nullptr || !readable(there->state()))
      objects_.tell({note_kind::erase, victims[i], {}, 0});
    else if (there->holds() != 0)
      objects_.pin(*id);
  }
  return answer;
}

void object_departures::keep(const std::vector<object_id>& ids) {
  for (object_id id : ids)
    if (is_demoting(objects_.table().get(id)))
      stays(id);
}

void object_departures::retire(extent range) {
  retired_.push_back(range);
  const resident_table& table = objects_.table();
  std::vector<object_id> there;
  for (uint32_t slot = 0; slot < table.slots(); ++slot) {
    const resident& object = table.at_slot(slot);
    if (may_leave(&object) && object.offset() >= range.offset && object.offset() < range.offset + range.size)
      there.push_back(table.id_at(slot));
  }
  for (object_id id : there)
    leave(id);
}

bool object_departures::leave(object_id id) {
  const resident& object = *objects_.table().get(id);
  auto holds = [&](const extent& range) {
    return object.offset() >= range.offset && object.offset() < range.offset + range.size;
  };
  if (!stages_ && std::none_of(retired_.begin(), retired_.end(), holds))
    return false;
  if (writes_first_) {
    objects_.table().demote(id);
    leaving_.push_back(id);
    return false;
  }
  left_.push_back(drop(id, note_kind::erase));
  return true;
}

void object_departures::leave_now(const std::vector<object_id>& ids) {
  for (object_id id : ids) {
    const resident* object = objects_.table().get(id);
    if (!is_demoting(object))
      continue;
    if (object->holds() != 0) // its write has stalled; it leaves when the write ends
      stays(id);
    else
      left_.push_back(drop(id, note_kind::erase));
  }
}

std::vector<demoted_object> object_departures::describe(const std::vector<object_id>& ids) const {
  std::vector<demoted_object> described;
  for (object_id id : ids) {
    const resident* object = objects_.table().get(id);
    if (object != nullptr && readable(object->state()))
      described.push_back({object->key(), origins_.parent_of(id), objects_.place_of(id), object->trailing()});
  }
  return described;
}

void object_departures::begin_write(const std::vector<object_place>& places) {
  for (const object_place& place : places)
    objects_.table().hold(place.id);
}

std::vector<object_id> object_departures::published_from(uint32_t& next, size_t count_max) const {
  const resident_table& table = objects_.table();
  std::vector<object_id> ids;
  for (; next < table.slots() && ids.size() < count_max; ++next)
    if (readable(table.at_slot(next).state()))
      ids.push_back(table.id_at(next));
  return ids;
}

void object_departures::published(object_id id, entry_key parent) {
  if (!origins_.kept())
    return;
  origins_.remember(id, parent);
  for (entry_key above = parent; !above.empty();) {
    auto at = objects_.table().find(above);
    if (!at || !is_demoting(objects_.table().get(*at)))
      return;
    stays(*at);
    above = origins_.parent_of(*at);
  }
}

void object_departures::stays(object_id id) {
  objects_.table().keep(id);
  if (objects_.table().get(id)->holds() != 0)
    return;
  objects_.unpin(id);
  objects_.evictable = true;
  leave(id);
}

} // namespace terrace
