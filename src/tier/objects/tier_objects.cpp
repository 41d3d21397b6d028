#include "tier/objects/tier_objects.hpp"

#include <algorithm>

namespace terrace {

void tier_events::add(note_kind kind, const object_key& key) {
  if (!log_ || !log_->records())
    return;
  if (kind == note_kind::insert)
    events_.push_back({0, event_kind::admit, tier_, key});
  else if (kind == note_kind::evict || kind == note_kind::erase)
    events_.push_back({0, kind == note_kind::evict ? event_kind::evict : event_kind::clear, tier_, key});
}

void tier_events::add_departure(entry_key name, miss_reason why) {
  if (log_)
    log_->departures().add(name, tier_, why);
}

void tier_events::add_refusal(entry_key name, tier_kind by, refusal_reason why) {
  if (log_)
    log_->departures().add_refusal(name, by, why);
}

void tier_events::chain_first(size_t before) {
  auto begin = events_.begin() + static_cast<ptrdiff_t>(before);
  if (std::all_of(begin, events_.end(), [](auto& one) { return one.kind == event_kind::admit; }))
    std::reverse(begin, events_.end());
}

const resident* tier_objects::named(entry_key name) const {
  auto id = table().find(name);
  return id ? table().get(*id) : nullptr;
}

object_place tier_objects::place_of(object_id id) const {
  const resident* object = table().get(id);
  return {id, object->offset(), object->payload_bytes(), object->physical_bytes(),
          durable_ ? durable_->generation_of(id) : 0};
}

void tier_objects::note(note_kind kind, const resident& object, entry_key parent) {
  tell({kind, object.name(), parent, object.physical_bytes()});
  events.add(kind, object.key());
}

void tier_objects::pin(object_id id) {
  if (table().set_pinned(id, true))
    note(note_kind::pin, *table().get(id));
}

void tier_objects::unpin(object_id id) {
  if (table().set_pinned(id, false))
    note(note_kind::unpin, *table().get(id));
}

void tier_objects::note_departure(note_kind kind, const resident& object, miss_reason why) {
  note(kind, object);
  events.add_departure(object.name(), why);
}

void tier_objects::note_uses(const resident& last, uint32_t objects) {
  tell({note_kind::hit, last.name(), {}, last.physical_bytes(), objects});
}

policy_notes tier_objects::take_notes() {
  notes_.tier = kind_;
  return std::exchange(notes_, {});
}

} // namespace terrace
