#include "tier/objects/residency.hpp"

#include "index/object_header.hpp"
#include "tier/objects/object_place.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

namespace {
extent extent_of(const resident& object) { return {object.offset(), object.physical_bytes()}; }

/// Makes room for `more` notes: growing step by step would copy each of them again.
void make_room(std::vector<policy_note>& notes, size_t more) {
  if (notes.capacity() - notes.size() < more)
    notes.reserve(std::max(notes.size() + more, 2 * notes.capacity()));
}

/// `of(i)` returns object i, or null.
template <class Of, class Visit>
void objects_in_access_order(size_t objects, Of&& of, Visit&& visit) {
  in_access_order(
      objects, [&](size_t i) { return of(i) != nullptr; }, [&](size_t i) { return of(i)->trailing(); },
      [&](size_t i) { visit(i, *of(i)); });
}

miss_reason reason_of(discard_reason why) {
  switch (why) {
    case discard_reason::unusable: return miss_reason::incomplete;
    case discard_reason::moved:
    case discard_reason::unwanted: return miss_reason::removed;
    default: return miss_reason::damaged;
  }
}
} // namespace

object_place residency::place_of(object_id id) const {
  const resident* object = table().get(id);
  return {id, object->offset(), object->payload_bytes(), object->physical_bytes(),
          durable_ ? durable_->generation_of(id) : 0};
}

void residency::note(note_kind kind, const resident& object, entry_key parent) {
  notes_.notes.push_back({kind, object.name(), parent, object.physical_bytes()});
  if (!log_ || !log_->records())
    return;
  if (kind == note_kind::insert)
    events_.push_back({0, event_kind::admit, kind_, object.key()});
  else if (kind == note_kind::evict || kind == note_kind::erase)
    events_.push_back(
        {0, kind == note_kind::evict ? event_kind::evict : event_kind::clear, kind_, object.key()});
}

void residency::note_departure(note_kind kind, const resident& object, miss_reason why) {
  note(kind, object);
  if (log_)
    log_->departures().add(object.name(), kind_, why);
}

object_place residency::hold(object_id id) {
  bool first = residents().hold(id);
  if (residents().get(id)->state() == object_state::demoting)
    kept(id);
  else if (first)
    note(note_kind::pin, *residents().get(id));
  return place_of(id);
}

residency::found residency::probe(const object_batch& objects, bool hold, bool note_access,
                                  object_range range) {
  auto keys = tier_index::cut(objects, range);
  found answer;
  std::vector<object_id> ids(keys.size());
  index_->find(keys, ids);
  answer.present = object_bitmap(keys.size());
  if (hold)
    answer.places.resize(keys.size());
  make_room(notes_.notes, keys.size() * (size_t{hold} + size_t{note_access}));
  objects_in_access_order(
      ids.size(), [&](size_t i) { return residents().get(ids[i]); },
      [&](size_t i, const resident& object) {
        answer.present.set(i);
        ++answer.hits;
        if (note_access)
          used(ids[i], object);
        if (hold)
          answer.places[i] = this->hold(ids[i]);
      });
  return answer;
}

void residency::use(const std::vector<object_id>& ids) {
  objects_in_access_order(
      ids.size(), [&](size_t i) { return residents().get(ids[i]); },
      [&](size_t i, const resident& object) {
        if (readable(object.state()))
          used(ids[i], object);
      });
}

residency::need residency::missing(const acquire_request& request) const {
  need wanted;
  if (!request.fill)
    return wanted;
  const object_batch& objects = *request.objects;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (!request.may_fill.empty() && !request.may_fill[i])
      continue;
    if (auto id = table().find(objects.keys[i]); id && !to_replace(request, *table().get(*id)))
      continue;
    wanted.sizes.push_back(physical_bytes_for(objects.payload_bytes[i]));
    wanted.objects.push_back(i);
  }
  return wanted;
}

residency::acquired residency::acquire(const acquire_request& request, const need& wanted,
                                       const std::vector<extent>& granted) {
  assert(granted.size() == wanted.objects.size());
  const object_batch& objects = *request.objects;
  acquired answer;
  answer.states.resize(objects.size(), acquired_state::absent);
  answer.places.resize(objects.size());
  answer.held.resize(objects.size());
  if (index_->has_reach() || request.replace) {
    auto dropped = drop_replaced(request, wanted.objects);
    answer.unused = std::move(dropped.freed);
    answer.replaced = dropped.objects;
    answer.replaced_bytes = dropped.bytes;
  }
  std::vector<object_id> ids(objects.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = residents().find(objects.keys[i]).value_or(object_id{});
    if (index_->has_reach() && ids[i] != object_id{} && out_of_reach(*residents().get(ids[i])))
      ids[i] = {};
  }
  objects_in_access_order(
      ids.size(), [&](size_t i) { return residents().get(ids[i]); },
      [&](size_t i, const resident& object) {
        if (object.state() == object_state::reserved) {
          answer.states[i] = acquired_state::pending;
          return;
        }
        if (request.note_access)
          used(ids[i], object);
        answer.states[i] = acquired_state::held;
        answer.held[i] = hold(ids[i]);
        answer.places[i] = answer.held[i];
      });
  for (size_t n = 0; n < granted.size(); ++n) {
    size_t i = wanted.objects[n];
    if (answer.states[i] != acquired_state::absent || residents().find(objects.keys[i])) {
      answer.unused.push_back(
          granted[n]); // another request stored it meanwhile, or the batch contains it twice
      if (answer.states[i] == acquired_state::absent)
        answer.states[i] = acquired_state::pending;
      continue;
    }
    object_id id =
        residents().insert({objects.keys[i], objects.parents[i], granted[n].offset, granted[n].size,
                            objects.payload_bytes[i], objects.trailing.test(objects.keys[i].pool)});
    if (durable_)
      durable_->reserve(residents(), id, objects.parents[i]);
    answer.states[i] = acquired_state::reserved;
    answer.places[i] = place_of(id);
    answer.reserved.push_back(id);
  }
  return answer;
}

std::vector<object_place> residency::publish(const std::vector<object_place>& places, bool hold,
                                             uint64_t inference) {
  notes_.inference = inference;
  std::vector<object_place> published(places.size());
  auto told = static_cast<ptrdiff_t>(events_.size());
  objects_in_access_order(
      places.size(), [&](size_t i) { return residents().get(places[i].id); },
      [&](size_t i, const resident& object) {
        if (object.state() != object_state::reserved)
          return;
        entry_key parent = residents().parent_of(places[i].id);
        note(note_kind::insert, object, parent);
        remember_origin(places[i].id, parent);
        residents().publish(places[i].id);
        if (fresh_)
          fresh_->insert(object.name());
        if (durable_)
          durable_->published(residents(), places[i].id);
        if (hold)
          published[i] = this->hold(places[i].id);
        else
          published[i] = place_of(places[i].id);
        evictable_ = evictable_ || !hold;
        entry_key name = object.name();
        if (!hold)
          leave(places[i].id);
        awaited_.settle(name, true);
      });
  // Subscribers are told of the beginning of a chain first. An object that has come and left again keeps its order.
  if (std::all_of(events_.begin() + told, events_.end(),
                  [](auto& one) { return one.kind == event_kind::admit; }))
    std::reverse(events_.begin() + told, events_.end());
  return published;
}

std::vector<extent> residency::release(const std::vector<object_id>& ids) {
  std::vector<extent> freed;
  make_room(notes_.notes, ids.size());
  for (object_id id : ids) {
    if (!residents().release(id))
      continue;
    const resident& object = *residents().get(id);
    if (object.state() == object_state::removed) {
      freed.push_back(extent_of(object));
      residents().erase(id);
      continue;
    }
    note(note_kind::unpin, object);
    evictable_ = !leave(id) || evictable_;
  }
  return freed;
}

std::vector<extent> residency::abandon(const std::vector<object_id>& ids) {
  std::vector<extent> freed;
  for (object_id id : ids) {
    const resident* object = residents().get(id);
    // The object is out of the index and not held: only its writer uses it.
    bool detached = object != nullptr && object->state() == object_state::removed && object->holds() == 0;
    if (object == nullptr || (object->state() != object_state::reserved && !detached))
      continue; // it was published in time
    freed.push_back(extent_of(*object));
    entry_key name = object->name();
    residents().erase(id);
    if (!detached) // its key may belong to another object by now
      awaited_.settle(name, false);
  }
  return freed;
}

void residency::detach(const std::vector<object_id>& ids) {
  for (object_id id : ids) {
    const resident* object = residents().get(id);
    if (object == nullptr || object->state() != object_state::reserved)
      continue;
    entry_key name = object->name();
    residents().remove(id);
    awaited_.settle(name, false);
  }
}

residency::discard_result residency::discard(const std::vector<object_id>& ids, discard_reason why) {
  discard_result done;
  for (object_id id : ids) {
    const resident* object = residents().get(id);
    if (object == nullptr || !readable(object->state()) ||
        (why == discard_reason::moved && object->holds() > 1))
      continue;
    ++done.objects;
    done.bytes += object->physical_bytes();
    note_departure(note_kind::erase, *object, reason_of(why));
    if (durable_)
      durable_->removed(residents(), id, why == discard_reason::unwanted);
    if (object->holds() != 0) {
      residents().remove(id);
      continue;
    }
    done.freed.push_back(extent_of(*object));
    residents().erase(id);
  }
  if (why == discard_reason::damaged)
    discarded += done.objects;
  return done;
}

void residency::restore(std::span<const index_record> records, std::span<const space_id> spaces) {
  constexpr size_t together = 64; // parents are looked up in groups, while their memory is fetched
  std::vector<std::pair<object_id, size_t>> added; // the id, and the index of its record
  std::vector<object_key> parents;
  std::vector<object_id> befores;
  auto has_parent = [&](size_t i) { return records[i].parent != digest{}; };
  auto parent_of = [&](size_t i) {
    return object_key{spaces[i], records[i].pool, records[i].rank, records[i].parent};
  };
  std::vector<object_key> keys;
  for (size_t begin = 0; begin < records.size(); begin += together) {
    keys.clear();
    for (size_t i = begin; i < std::min(begin + together, records.size()); ++i)
      keys.push_back({spaces[i], records[i].pool, records[i].rank, records[i].chunk});
    befores.resize(keys.size());
    residents().find_published(keys, befores); // loads what `find` and `insert` read into the cache
    added.clear();
    for (size_t i = begin; i < std::min(begin + together, records.size()); ++i) {
      const index_record& record = records[i];
      if (spaces[i] == space_id{})
        continue;
      const object_key& key = keys[i - begin];
      if (auto former = residents().find(key)) {
        std::erase_if(added, [&](const auto& one) { return one.first == *former; });
        note(note_kind::erase, *residents().get(*former));
        residents().erase(*former);
      }
      object_id id = residents().insert(
          {key, {}, record.offset, record.physical_bytes, record.payload_bytes, record.trailing});
      residents().publish(id);
      durable_->restore(id, record.generation, std::nullopt);
      note(note_kind::insert, *residents().get(id), has_parent(i) ? to_entry_key(parent_of(i)) : entry_key{});
      if (has_parent(i))
        added.emplace_back(id, i);
    }
    parents.clear();
    for (const auto& [id, i] : added)
      parents.push_back(parent_of(i));
    befores.resize(parents.size());
    residents().find_published(parents, befores);
    for (size_t n = 0; n < added.size(); ++n)
      if (befores[n] != object_id{})
        durable_->restore(added[n].first, records[added[n].second].generation, befores[n]);
  }
  evictable_ = true;
}

residency::cleared residency::clear(std::optional<space_id> space) {
  clear_walk walk{space, 0, {}};
  std::vector<extent> freed;
  for (bool more = true; more;) {
    more = clear_step(walk);
    freed.insert(freed.end(), walk.sum.freed.begin(), walk.sum.freed.end());
  }
  walk.sum.freed = std::move(freed);
  return std::move(walk.sum);
}

bool residency::clear_step(clear_walk& walk) {
  cleared& sum = walk.sum;
  sum.freed.clear();
  std::vector<object_id> ids;
  uint32_t end =
      residents().slots() - walk.next > clear_slots_max ? walk.next + clear_slots_max : residents().slots();
  for (; walk.next < end && ids.size() < clear_objects_max; ++walk.next) {
    const resident& object = residents().at_slot(walk.next);
    bool counts = readable(object.state()) || object.state() == object_state::reserved;
    if (counts && (!walk.space || object.key().space == *walk.space))
      ids.push_back(residents().id_at(walk.next));
  }
  assert(ids.size() <= clear_objects_max);
  for (object_id id : ids) {
    const resident& object = *residents().get(id);
    entry_key name = object.name();
    if (object.state() == object_state::reserved) {
      residents().remove(id); // its writer frees it
      awaited_.settle(name, false);
      continue;
    }
    ++sum.objects;
    sum.bytes += object.physical_bytes();
    note_departure(note_kind::erase, object, miss_reason::cleared);
    if (object.holds() != 0) {
      residents().remove(id);
      continue;
    }
    sum.freed.push_back(extent_of(object));
    residents().erase(id);
  }
  return walk.next < residents().slots();
}

std::vector<bool> residency::confirm(const std::vector<object_id>& ids) const {
  std::vector<bool> answer(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const resident* object = table().get(ids[i]);
    answer[i] = object != nullptr && readable(object->state());
  }
  return answer;
}

void residency::retire(extent range) {
  retired_.push_back(range);
  std::vector<object_id> there;
  for (uint32_t slot = 0; slot < residents().slots(); ++slot) {
    const resident& object = residents().at_slot(slot);
    if (object.state() == object_state::published && object.holds() == 0 && object.offset() >= range.offset &&
        object.offset() < range.offset + range.size)
      there.push_back(residents().id_at(slot));
  }
  for (object_id id : there)
    leave(id);
}

residency::offer residency::offered(const std::vector<entry_key>& victims) const {
  offer answer;
  for (size_t i = 0; i < victims.size(); ++i) {
    auto id = table().find(victims[i]);
    const resident* object = id ? table().get(*id) : nullptr;
    if (object == nullptr || object->holds() != 0 || object->state() != object_state::published)
      continue;
    answer.extents.push_back(extent_of(*object));
    answer.victims.push_back(i);
  }
  return answer;
}

residency::eviction residency::evict(const std::vector<entry_key>& victims) {
  eviction answer;
  for (entry_key name : victims) {
    auto id = residents().find(name);
    const resident* object = id ? residents().get(*id) : nullptr;
    if (object == nullptr || object->holds() != 0 || object->state() != object_state::published) {
      // The policy is told again, because two objects may share a name, and a refused victim must not be
      // proposed forever.
      bool held = object != nullptr && readable(object->state());
      notes_.notes.push_back({held ? note_kind::pin : note_kind::erase, name, {}, 0});
      ++answer.refused;
      continue;
    }
    answer.freed.push_back(extent_of(*object));
    drop(*id, note_kind::evict);
  }
  return answer;
}

void residency::await(const object_batch& objects, context_ptr context, awaited_objects::told done) {
  std::vector<entry_key> written;
  for (const object_key& key : objects.keys)
    if (auto id = table().find(key); id && table().get(*id)->state() == object_state::reserved)
      written.push_back(to_entry_key(key));
  awaited_.await(written, std::move(context), std::move(done));
}

policy_notes residency::take_notes() {
  if (quotas_)
    for (const auto& [tenant, bytes] : quotas_->take_grown())
      unshield(tenant, bytes);
  notes_.tier = kind_;
  policy_notes taken = std::move(notes_);
  notes_ = {};
  return taken;
}

residency::holders residency::describe_holders() const {
  holders now;
  uint64_t held = table().held_bytes();
  now.leased_bytes = leased_bytes();
  uint64_t transfers = held - std::min(held, now.leased_bytes);
  now.only_leases = now.leased_bytes != 0 && transfers == 0 && table().reserved_bytes() == 0;
  now.text = "leases and transfers hold " + std::to_string(held) + " bytes in " +
             std::to_string(table().held()) + " objects (leases " + std::to_string(now.leased_bytes) +
             "), writes in progress " + std::to_string(table().reserved_bytes()) + " bytes";
  return now;
}

image_answer residency::image(const image_request& request) const {
  image_answer part;
  part.objects = durable_->image(table(), request.first, request.count);
  std::erase_if(part.objects, [&](const index_change& change) {
    return change.record.offset - request.within.offset >= request.within.size;
  });
  part.next = request.first + request.count;
  part.last = part.next >= table().slots();
  return part;
}

std::vector<space_id> residency::empty_of(const std::vector<space_id>& spaces) const {
  std::vector<space_id> empty;
  for (space_id one : spaces)
    if (!table().has(one))
      empty.push_back(one);
  return empty;
}

} // namespace terrace
