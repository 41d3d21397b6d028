#include "tier/objects/durable_index.hpp"

#include <algorithm>

namespace terrace {

void durable_index::set(uint32_t slot, uint64_t generation, uint32_t parent) {
  while (generations_.size() <= slot) {
    generations_.push_back(0);
    parents_.push_back(none);
  }
  generations_[slot] = generation;
  parents_[slot] = parent;
}

uint64_t durable_index::reserve(const resident_table& table, object_id id, entry_key parent) {
  uint32_t before = none;
  if (!parent.empty())
    if (auto found = table.find(parent))
      before = resident_table::slot_of(*found);
  uint64_t generation = next_generation_++;
  set(resident_table::slot_of(id), generation, before);
  return generation;
}

void durable_index::restore(object_id id, uint64_t generation, std::optional<object_id> parent) {
  set(resident_table::slot_of(id), generation, parent ? resident_table::slot_of(*parent) : none);
  next_generation_ = std::max(next_generation_, generation + 1);
}

index_change durable_index::record_of(const resident_table& table, uint32_t slot) const {
  const resident& object = table.at_slot(slot);
  object_key key = object.key();
  index_change change;
  change.space = key.space;
  change.record.pool = key.pool;
  change.record.rank = key.rank;
  change.record.chunk = key.chunk;
  change.record.payload_bytes = static_cast<uint32_t>(object.payload_bytes());
  change.record.generation = generations_[slot];
  change.record.offset = object.offset();
  change.record.physical_bytes = object.physical_bytes();
  change.record.trailing = object.trailing();
  if (uint32_t before = parents_[slot]; before != none && generations_[before] < generations_[slot]) {
    const resident& parent = table.at_slot(before);
    if (parent.state() != object_state::free && parent.state() != object_state::removed)
      change.record.parent = parent.key().chunk;
  }
  return change;
}

void durable_index::published(const resident_table& table, object_id id) {
  changes_.push_back(record_of(table, resident_table::slot_of(id)));
}

void durable_index::removed(const resident_table& table, object_id id, bool unwanted) {
  index_change change = record_of(table, resident_table::slot_of(id));
  change.unwanted = unwanted;
  change.record = removal_of(change.record);
  changes_.push_back(change);
}

std::vector<index_change> durable_index::image(const resident_table& table, uint32_t first,
                                               uint32_t count) const {
  std::vector<index_change> records;
  uint32_t end = std::min(table.slots(), first + std::min(count, UINT32_MAX - first));
  for (uint32_t slot = first; slot < end; ++slot)
    if (readable(table.at_slot(slot).state()))
      records.push_back(record_of(table, slot));
  return records;
}

void durable_index::begin_epoch(uint64_t epoch) {
  next_generation_ = std::max(next_generation_, first_generation(epoch));
}

} // namespace terrace
