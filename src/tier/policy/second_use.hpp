// Which objects of a tier were used after they were stored, for tiers below that take only these (demotion `selective`): the
// store is the first use, and an object is written at its second. Objects that were written so are remembered, and are
// written again before they leave if the tiers below have lost them since (decision 045).
//
// Pure; used by one thread at a time.
#pragma once

#include "index/resident_table.hpp"
#include "index/segmented_array.hpp"
#include "index/space_registry.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace {

// The facts about an object that are needed to write it to another tier later and that the index of its tier
// does not have: the object before it in its chain, and its space.
//
// Pure; used by one thread at a time.

/// Belongs to one tier, beside its table: 16 bytes per object.
class origins {
 public:
  /// From now on the origins of published objects are kept.
  void keep() { kept_ = true; }
  bool kept() const { return kept_; }

  /// The object is being published; `parent` may be empty.
  void remember(object_id id, entry_key parent) {
    uint32_t slot = resident_table::slot_of(id);
    while (parents_.size() <= slot)
      parents_.push_back({});
    parents_[slot] = parent;
  }
  /// Returns the parent of a published object; empty: none, or the object was published before its origin was kept.
  entry_key parent_of(object_id id) const {
    uint32_t slot = resident_table::slot_of(id);
    return slot < parents_.size() ? parents_[slot] : entry_key{};
  }

  /// Objects of the space are published in the table. A copy of the space is kept, so that the space does not
  /// count as open.
  void remember(const space_ptr& space, const resident_table& table) {
    if (!kept_ || !space || spaces_.contains(space->id))
      return;
    if (spaces_.size() >= spaces_before_look_) {
      std::erase_if(spaces_, [&](const auto& each) { return table.totals().objects_of(each.first) == 0; });
      spaces_before_look_ = std::max(spaces_min, spaces_.size() * 2);
    }
    spaces_.emplace(space->id, std::make_shared<const opened_space>(*space));
  }
  /// Returns null if the space is unknown.
  space_ptr space(space_id id) const {
    auto found = spaces_.find(id);
    return found == spaces_.end() ? nullptr : found->second;
  }
  size_t spaces() const { return spaces_.size(); }

 private:
  static constexpr size_t spaces_min = 64;

  bool kept_ = false;
  segmented_array<entry_key> parents_; ///< by slot
  std::unordered_map<space_id, space_ptr> spaces_;
  size_t spaces_before_look_ = spaces_min; ///< number at which spaces without objects are looked for
};

/// Belongs to one tier and takes 4 bytes per object.
class second_use {
 public:
  /// From now on uses are kept.
  void watch() { watches_ = true; }
  void used(object_id id) {
    if (watches_)
      used_.push_back(id);
  }
  /// Returns those objects used since the last call that were not used before since they became resident, once each, in
  /// the order of their chains (uses are noted from the end of a chain).
  std::vector<object_id> take() {
    std::vector<object_id> second, used = std::exchange(used_, {});
    for (auto id = used.rbegin(); id != used.rend(); ++id)
      if (mark(*id))
        second.push_back(*id);
    return second;
  }

  /// These objects were not written after all: their next use counts as the second one again.
  void forget(const std::vector<object_id>& ids) {
    for (object_id id : ids)
      if (uint32_t slot = resident_table::slot_of(id); slot < seen_.size() && seen_[slot] == told(id))
        seen_[slot] = again(id);
  }

  /// Returns those that were used a second time since they came here, in their order.
  std::vector<object_id> used_twice(std::vector<object_id> ids) const {
    std::erase_if(ids, [this](object_id id) { return !was_used(id); });
    return ids;
  }

 private:
  /// True if a second use was seen.
  bool was_used(object_id id) const {
    uint32_t slot = resident_table::slot_of(id);
    return id != object_id{} && slot < seen_.size() && (seen_[slot] == told(id) || seen_[slot] == again(id));
  }
  /// An object's stay in its slot, without its highest bit (a slot would have to be used 2^31 times in between); never 0 in
  /// practice, because generations begin at 1.
  static uint32_t told(object_id id) { return static_cast<uint32_t>(static_cast<uint64_t>(id) >> 31) & ~1U; }
  static uint32_t again(object_id id) { return told(id) | 1; } ///< the next use counts again
  bool mark(object_id id) {
    uint32_t slot = resident_table::slot_of(id);
    while (seen_.size() <= slot)
      seen_.push_back(0);
    if (seen_[slot] == told(id))
      return false;
    seen_[slot] = told(id);
    return true;
  }

  bool watches_ = false;
  std::vector<object_id> used_; ///< objects used since the last `take`
  /// By slot: the last stay for which a use was seen, and 1 if its next use counts again.
  segmented_array<uint32_t> seen_;
};

} // namespace terrace
