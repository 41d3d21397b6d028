// Objects that leave, and those that are written to a tier below first: see residency.hpp. The policy knows
// an object as pinned while it has holds and is not `demoting`.
#include "tier/objects/residency.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

namespace {
extent extent_at(const resident& object) { return {object.offset(), object.physical_bytes()}; }
} // namespace

void residency::keep_origins(bool before_leaving) {
  if (!origins_)
    origins_.emplace();
  writes_before_leaving_ = writes_before_leaving_ || before_leaving;
}

/// An object that continues the prefix of others makes them stay: suffixes leave before prefixes.
void residency::remember_origin(object_id id, entry_key parent) {
  if (!origins_)
    return;
  origins_->remember(id, parent);
  for (entry_key above = parent; !above.empty();) {
    auto at = residents().find(above);
    if (!at || residents().get(*at)->state() != object_state::demoting)
      return;
    kept(*at);
    above = origins_->parent_of(*at);
  }
}

void residency::used(object_id id, const resident& object) {
  note(note_kind::hit, object);
  if (watches_uses_)
    used_.push_back(id);
}

void residency::kept(object_id id) {
  residents().keep(id);
  const resident& object = *residents().get(id);
  if (object.holds() != 0) {
    note(note_kind::pin, object);
  } else {
    evictable_ = true;
    leave(id);
  }
}

std::vector<object_id> residency::begin_demotion(const std::vector<entry_key>& victims) {
  std::vector<object_id> ids(victims.size());
  for (size_t i = 0; i < victims.size(); ++i) {
    auto id = residents().find(victims[i]);
    const resident* object = id ? residents().get(*id) : nullptr;
    if (object == nullptr || object->holds() != 0 || object->state() != object_state::published)
      continue;
    residents().demote(*id);
    ids[i] = *id;
  }
  return ids;
}

std::vector<demoted_object> residency::describe(const std::vector<object_id>& ids) const {
  std::vector<demoted_object> described;
  for (object_id id : ids) {
    const resident* object = table().get(id);
    if (object == nullptr || !readable(object->state()))
      continue;
    described.push_back(
        {object->key(), origins_ ? origins_->parent_of(id) : entry_key{}, place_of(id), object->trailing()});
  }
  return described;
}

void residency::begin_write(const std::vector<object_place>& places) {
  for (const object_place& place : places) {
    bool first = residents().hold(place.id);
    const resident& object = *residents().get(place.id);
    if (first && object.state() != object_state::demoting)
      note(note_kind::pin, object);
  }
}

std::vector<extent> residency::end_write(const std::vector<object_id>& ids) {
  std::vector<object_id> others; // objects that must not leave
  for (object_id id : ids)
    if (const resident* object = residents().get(id);
        object != nullptr && object->state() == object_state::demoting)
      residents().release(id); // nobody else holds it, and the policy knows of no hold
    else
      others.push_back(id);
  return release(others);
}

void residency::keep(const std::vector<object_id>& ids) {
  for (object_id id : ids)
    if (const resident* object = residents().get(id);
        object != nullptr && object->state() == object_state::demoting)
      kept(id);
}

residency::eviction residency::evict_demoted(const std::vector<entry_key>& victims,
                                             const std::vector<object_id>& ids) {
  assert(victims.size() == ids.size());
  eviction answer;
  for (size_t i = 0; i < victims.size(); ++i) {
    const resident* object = residents().get(ids[i]);
    if (object != nullptr && object->state() == object_state::demoting && object->holds() == 0) {
      answer.freed.push_back(extent_at(*object));
      drop(ids[i], note_kind::evict);
      continue;
    }
    if (object != nullptr && object->state() == object_state::demoting)
      kept(ids[i]); // it is being written for another reason as well
    // As in `evict`. Another object with this name may be there by now: it was not written, and is proposed again.
    ++answer.refused;
    auto now = residents().find(victims[i]);
    const resident* there = now ? residents().get(*now) : nullptr;
    if (there == nullptr || !readable(there->state()))
      notes_.notes.push_back({note_kind::erase, victims[i], {}, 0});
    else if (there->holds() != 0)
      notes_.notes.push_back({note_kind::pin, victims[i], {}, 0});
  }
  return answer;
}

bool residency::leave(object_id id) {
  const resident& object = *residents().get(id);
  auto holds = [&](const extent& range) {
    return object.offset() >= range.offset && object.offset() < range.offset + range.size;
  };
  if (!stages_ && std::none_of(retired_.begin(), retired_.end(), holds))
    return false;
  if (writes_before_leaving_) {
    residents().demote(id);
    leaving_.push_back(id);
    return false;
  }
  left_.push_back(extent_at(object));
  drop(id, note_kind::erase);
  return true;
}

/// Removes the object; its extent belongs to the caller.
void residency::drop(object_id id, note_kind why) {
  note_departure(why, *residents().get(id),
                 why == note_kind::evict ? miss_reason::evicted : miss_reason::retired);
  if (durable_)
    durable_->removed(residents(), id);
  residents().erase(id);
  ++evictions;
}

void residency::leave_now(const std::vector<object_id>& ids) {
  for (object_id id : ids) {
    const resident* object = residents().get(id);
    if (object == nullptr || object->state() != object_state::demoting)
      continue;
    if (object->holds() != 0) { // its write has stalled; it leaves when the write ends
      kept(id);
      continue;
    }
    left_.push_back(extent_at(*object));
    drop(id, note_kind::erase);
  }
}

std::vector<object_id> residency::published_from(uint32_t& next, size_t count_max) const {
  std::vector<object_id> ids;
  for (; next < table().slots() && ids.size() < count_max; ++next)
    if (readable(table().at_slot(next).state()))
      ids.push_back(table().id_at(next));
  return ids;
}

} // namespace terrace
