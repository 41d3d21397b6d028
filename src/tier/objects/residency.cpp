#include "tier/objects/residency.hpp"

#include "base/printable.hpp"
#include "index/object_header.hpp"
#include "tier/objects/object_batch.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

namespace {
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
    case discard_reason::replaced:
    case discard_reason::unwanted: return miss_reason::removed;
    default: return miss_reason::damaged;
  }
}
} // namespace

object_place residency::hold(object_id id) {
  residents().hold(id);
  if (residents().get(id)->state() == object_state::demoting)
    departures_.stays(id);
  return objects_.place_of(id);
}

void residency::used(object_id id, const resident& object) {
  objects_.note(note_kind::hit, object);
  departures_.uses().used(id);
}

residency::found residency::probe(const probe_request& request) {
  auto keys = tier_index::cut(*request.objects, request.range);
  std::vector<object_id> ids(keys.size());
  objects_.index()->find(keys, ids);
  found answer;
  answer.present = object_bitmap::of(ids.size(), [&](size_t i) { return ids[i] != object_id{}; });
  answer.hits = answer.present.count();
  if (request.hold && answer.hits != 0) {
    answer.places.resize(ids.size());
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] != object_id{})
        answer.places[i] = hold(ids[i]);
  }
  if (request.note_access)
    use({std::move(ids), request.chains});
  return answer;
}

void residency::use(const access_notice& accessed) {
  const auto& ids = accessed.ids;
  for (size_t chain = 0; chain < std::min(accessed.chains, ids.size()); ++chain)
    use_chain(ids, chain + (ids.size() - 1 - chain) / accessed.chains * accessed.chains, accessed.chains);
  if (accessed.chains != 0)
    return;
  objects_in_access_order(
      ids.size(), [&](size_t i) { return residents().get(ids[i]); },
      [&](size_t i, const resident& object) {
        if (readable(object.state()))
          used(ids[i], object);
      });
}

/// One note for each run of objects without a gap. The objects are every `step`-th up to number `last`.
void residency::use_chain(std::span<const object_id> ids, size_t last, size_t step) {
  const resident* end = nullptr; // of the run
  uint32_t run = 0;
  auto tell = [&] {
    if (run != 0)
      objects_.note_uses(*end, run);
    run = 0;
  };
  for (size_t i = last + step; i >= step;) {
    i -= step;
    const resident* object = table().get(ids[i]);
    if (object == nullptr || !readable(object->state()) || run == policy_note::entries_max)
      tell();
    if (object == nullptr || !readable(object->state()))
      continue;
    if (run++ == 0)
      end = object;
    departures_.uses().used(ids[i]);
  }
  tell();
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
  const bool has_reach = objects_.index()->has_reach();
  if (has_reach || request.replace) {
    auto dropped = drop_replaced(request, wanted.objects);
    answer.unused = std::move(dropped.freed);
    answer.replaced = dropped.objects;
    answer.replaced_bytes = dropped.bytes;
  }
  std::vector<object_id> ids(objects.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = residents().find(objects.keys[i]).value_or(object_id{});
    if (has_reach && ids[i] != object_id{} && out_of_reach(*residents().get(ids[i])))
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
    if (auto* durable = objects_.durable())
      durable->reserve(residents(), id, objects.parents[i]);
    answer.states[i] = acquired_state::reserved;
    answer.places[i] = objects_.place_of(id);
    answer.reserved.push_back(id);
  }
  return answer;
}

std::vector<object_place> residency::publish(const std::vector<object_place>& places, bool hold,
                                             uint64_t inference) {
  objects_.noted_for(inference);
  std::vector<object_place> published(places.size());
  const size_t told = objects_.events.size();
  objects_in_access_order(
      places.size(), [&](size_t i) { return residents().get(places[i].id); },
      [&](size_t i, const resident& object) {
        if (object.state() != object_state::reserved)
          return;
        entry_key parent = residents().parent_of(places[i].id);
        objects_.note(note_kind::insert, object, parent);
        departures_.published(places[i].id, parent);
        residents().publish(places[i].id);
        shares_.published(object.name());
        if (auto* durable = objects_.durable())
          durable->published(residents(), places[i].id);
        if (hold)
          published[i] = this->hold(places[i].id);
        else
          published[i] = objects_.place_of(places[i].id);
        objects_.evictable = objects_.evictable || !hold;
        entry_key name = object.name();
        if (!hold)
          departures_.leave(places[i].id);
        awaited_.settle(name, true);
      });
  objects_.events.chain_first(told);
  return published;
}

std::vector<extent> residency::release(const std::vector<object_id>& ids) {
  std::vector<extent> freed;
  for (object_id id : ids) {
    if (!residents().release(id))
      continue;
    const resident& object = *residents().get(id);
    if (object.state() == object_state::removed) {
      freed.push_back(extent_of(object));
      residents().erase(id);
      continue;
    }
    if (object.state() == object_state::demoting)
      continue; // it is written because it leaves
    objects_.unpin(id);
    objects_.evictable = !departures_.leave(id) || objects_.evictable;
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
    objects_.note_departure(note_kind::erase, *object, reason_of(why));
    if (auto* durable = objects_.durable())
      durable->removed(residents(), id, why == discard_reason::unwanted);
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
        objects_.note(note_kind::erase, *residents().get(*former));
        residents().erase(*former);
      }
      object_id id = residents().insert(
          {key, {}, record.offset, record.physical_bytes, record.payload_bytes, record.trailing});
      residents().publish(id);
      objects_.durable()->restore(id, record.generation, std::nullopt);
      objects_.note(note_kind::insert, *residents().get(id),
                    has_parent(i) ? to_entry_key(parent_of(i)) : entry_key{});
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
        objects_.durable()->restore(added[n].first, records[added[n].second].generation, befores[n]);
  }
  objects_.evictable = true;
}

bool residency::clear_step(clear_walk& walk) {
  if (walk.next == 0) {
    walk.last = is_last_removal(walk.in_progress);
    begin_removal({walk.space, nullptr, walk.in_progress});
  }
  if (walk.next == 0 && objects_.durable() != nullptr && !walk.published_only)
    recount_.begin_clear(walk.space); // to `tier_clear::forget`
  walk.freed.clear();
  std::vector<object_id> ids;
  uint32_t end =
      residents().slots() - walk.next > clear_slots_max ? walk.next + clear_slots_max : residents().slots();
  for (; walk.next < end && ids.size() < clear_objects_max; ++walk.next) {
    const resident& object = residents().at_slot(walk.next);
    bool counts =
        readable(object.state()) || (object.state() == object_state::reserved && !walk.published_only);
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
    ++walk.objects;
    walk.bytes += object.physical_bytes();
    objects_.note_departure(note_kind::erase, object, miss_reason::cleared);
    if (object.holds() != 0) {
      residents().remove(id);
      continue;
    }
    walk.freed.push_back(extent_of(object));
    residents().erase(id);
  }
  if (walk.next < residents().slots())
    return true;
  if (walk.last)
    end_removal(walk.in_progress);
  return false;
}

namespace {

bool are_same(const std::weak_ptr<const void>& one, const std::weak_ptr<const void>& other) {
  return !one.owner_before(other) && !other.owner_before(one);
}

} // namespace

bool residency::is_last_removal(const std::weak_ptr<const void>& by) const {
  return !by.expired() && std::any_of(removals_.begin(), removals_.end(),
                                      [&by](const auto& each) { return are_same(each.ends, by); });
}

void residency::end_removal(const std::weak_ptr<const void>& by) {
  std::erase_if(removals_, [&by](const removal_in_progress& each) { return are_same(each.ends, by); });
}

void residency::begin_removal(removal_in_progress begun) {
  std::erase_if(removals_, [](const removal_in_progress& each) { return each.ends.expired(); });
  if (!begun.ends.expired())
    removals_.push_back(std::move(begun));
}

bool residency::is_being_removed(const object_key& key) const {
  return std::any_of(removals_.begin(), removals_.end(), [&key](const removal_in_progress& each) {
    if ((each.space && *each.space != key.space) || each.ends.expired())
      return false;
    return !each.objects ||
           std::find(each.objects->keys.begin(), each.objects->keys.end(), key) != each.objects->keys.end();
  });
}

std::vector<bool> residency::confirm(const std::vector<object_id>& ids) const {
  std::vector<bool> answer(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const resident* object = table().get(ids[i]);
    answer[i] = object != nullptr && readable(object->state()) && !is_being_removed(object->key());
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
  shares_.unshield_grown();
  return objects_.take_notes();
}

residency::holders residency::count_holders() const {
  holders now;
  uint64_t held = table().totals().held.bytes;
  now.leased_bytes = leased_bytes();
  now.transfer_bytes = held - std::min(held, now.leased_bytes) + table().totals().reserved_bytes;
  return now;
}

residency::holders residency::describe_holders() const {
  holders now = count_holders();
  now.text = "leases and transfers hold " + readable_bytes(table().totals().held.bytes) + " in " +
             std::to_string(table().totals().held.objects) +
             (table().totals().held.objects == 1 ? " object" : " objects") + " (leases " +
             readable_bytes(now.leased_bytes) + "), writes in progress " +
             readable_bytes(table().totals().reserved_bytes);
  return now;
}

residency::removal residency::remove(const remove_request& request) {
  const object_batch& objects = *request.objects;
  if (is_last_removal(request.in_progress))
    end_removal(request.in_progress);
  else if (objects.size() != 0)
    begin_removal({objects.keys.front().space, request.objects, request.in_progress});
  removal done;
  done.removed.resize(objects.size());
  std::vector<object_id> published, reserved;
  for (size_t i = 0; i < objects.size(); ++i) {
    auto id = residents().find(objects.keys[i]);
    if (!id)
      continue;
    done.removed[i] = readable(residents().get(*id)->state());
    (done.removed[i] ? published : reserved).push_back(*id);
  }
  if (request.written)
    detach(reserved);
  done.pending = !request.written && !reserved.empty();
  done.of = discard(published, request.why);
  return done;
}

/// True if the object is present but unreachable, or is to be replaced.
bool residency::to_replace(const acquire_request& request, const resident& object) const {
  return out_of_reach(object) || (request.replace && readable(object.state()));
}

/// Removes objects in favor of what is written instead.
residency::discard_result residency::drop_replaced(const acquire_request& request,
                                                   const std::vector<size_t>& wanted) {
  std::vector<object_id> ids;
  for (size_t i : wanted)
    if (auto id = residents().find(request.objects->keys[i]);
        id && to_replace(request, *residents().get(*id)))
      ids.push_back(*id);
  return discard(ids, request.replace ? discard_reason::replaced : discard_reason::unusable);
}

} // namespace terrace
