#include "index/resident_table.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

namespace {
constexpr size_t not_found = SIZE_MAX;
constexpr size_t prefetch_batch = 16;
} // namespace

resident_table::resident_table() : buckets_(64, empty) {}

object_id resident_table::id_of(uint32_t slot) const {
  return static_cast<object_id>(static_cast<uint64_t>(slots_[slot].generation) << 32 | slot);
}

size_t resident_table::find_bucket(entry_key name, const object_key* key) const {
  for (size_t b = bucket_of(name.low);; b = (b + 1) & (buckets_.size() - 1)) {
    uint32_t slot = buckets_[b];
    if (slot == empty)
      return not_found;
    const resident& object = slots_[slot];
    if (object.name == name && (key == nullptr || object.key == *key))
      return b;
  }
}

std::optional<object_id> resident_table::find(const object_key& key) const {
  size_t b = find_bucket(to_entry_key(key), &key);
  return b == not_found ? std::nullopt : std::optional(id_of(buckets_[b]));
}

std::optional<object_id> resident_table::find(entry_key name) const {
  size_t b = find_bucket(name, nullptr);
  return b == not_found ? std::nullopt : std::optional(id_of(buckets_[b]));
}

void resident_table::find_published(std::span<const object_key> keys, std::span<object_id> ids) const {
  assert(keys.size() == ids.size());
  entry_key names[prefetch_batch];
  for (size_t begin = 0; begin < keys.size(); begin += prefetch_batch) {
    size_t n = std::min(prefetch_batch, keys.size() - begin);
    for (size_t i = 0; i < n; ++i) {
      names[i] = to_entry_key(keys[begin + i]);
      __builtin_prefetch(&buckets_[bucket_of(names[i].low)]);
    }
    for (size_t i = 0; i < n; ++i)
      if (uint32_t slot = buckets_[bucket_of(names[i].low)]; slot != empty)
        __builtin_prefetch(&slots_[slot]);
    for (size_t i = 0; i < n; ++i) {
      size_t b = find_bucket(names[i], &keys[begin + i]);
      bool visible = b != not_found && slots_[buckets_[b]].state == object_state::published;
      ids[begin + i] = visible ? id_of(buckets_[b]) : object_id{};
    }
  }
}

object_id resident_table::insert(const resident& object) {
  assert(!find(object.key));
  if ((live_ + 1) * 4 > buckets_.size() * 3)
    grow();
  uint32_t slot;
  uint32_t generation = 0;
  if (free_slots_.empty()) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    generation = slots_[slot].generation;
  }
  resident& place = slots_[slot];
  place = object;
  place.name = to_entry_key(object.key);
  place.generation = generation + 1;
  place.state = object_state::reserved;
  place.holds = 0;
  size_t b = bucket_of(place.name.low);
  while (buckets_[b] != empty)
    b = (b + 1) & (buckets_.size() - 1);
  buckets_[b] = slot;
  ++live_;
  return id_of(slot);
}

resident* resident_table::get(object_id id) {
  return const_cast<resident*>(static_cast<const resident_table*>(this)->get(id));
}

const resident* resident_table::get(object_id id) const {
  auto slot = static_cast<uint32_t>(static_cast<uint64_t>(id));
  auto generation = static_cast<uint32_t>(static_cast<uint64_t>(id) >> 32);
  if (slot >= slots_.size() || slots_[slot].generation != generation || (generation & 1) == 0)
    return nullptr;
  return &slots_[slot];
}

void resident_table::erase(object_id id) {
  resident* object = get(id);
  assert(object != nullptr && object->holds == 0);
  if (object->state != object_state::removed)
    unlink(*object);
  ++object->generation;
  free_slots_.push_back(static_cast<uint32_t>(static_cast<uint64_t>(id)));
  --live_;
}

void resident_table::remove(object_id id) {
  resident* object = get(id);
  assert(object != nullptr && object->state == object_state::published);
  unlink(*object);
  object->state = object_state::removed;
}

void resident_table::unlink(const resident& object) {
  size_t hole = find_bucket(object.name, &object.key);
  assert(hole != not_found);
  if (object.state == object_state::published)
    --published_;
  // Backward shift: close the hole, so that no tombstones pile up.
  size_t mask = buckets_.size() - 1;
  for (size_t b = (hole + 1) & mask; buckets_[b] != empty; b = (b + 1) & mask) {
    size_t home = bucket_of(slots_[buckets_[b]].name.low);
    if (((b - home) & mask) >= ((b - hole) & mask)) {
      buckets_[hole] = buckets_[b];
      hole = b;
    }
  }
  buckets_[hole] = empty;
}

void resident_table::publish(object_id id) {
  resident* object = get(id);
  assert(object != nullptr && object->state == object_state::reserved);
  object->state = object_state::published;
  ++published_;
}

bool resident_table::hold(object_id id) {
  resident* object = get(id);
  assert(object != nullptr && object->state == object_state::published);
  if (object->holds++ != 0)
    return false;
  ++held_;
  return true;
}

bool resident_table::release(object_id id) {
  resident* object = get(id);
  assert(object != nullptr && object->holds > 0);
  if (--object->holds != 0)
    return false;
  --held_;
  return true;
}

void resident_table::grow() {
  std::vector<uint32_t> larger(buckets_.size() * 2, empty);
  size_t mask = larger.size() - 1;
  for (uint32_t slot : buckets_) {
    if (slot == empty)
      continue;
    size_t b = slots_[slot].name.low & mask;
    while (larger[b] != empty)
      b = (b + 1) & mask;
    larger[b] = slot;
  }
  buckets_.swap(larger);
}

} // namespace terrace
