// The facts about an object that are needed to write it to another tier later and that the index of its tier
// does not have: the object before it in its chain, and its space.
//
// Pure; used by one thread at a time.
#pragma once

#include "index/resident_table.hpp"
#include "index/segmented_array.hpp"
#include "index/space_registry.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace terrace {

/// Belongs to one tier, beside its table: 16 bytes per object.
class origins {
 public:
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
  void remember(const space_ptr& in, const resident_table& table) {
    if (!in || spaces_.contains(in->id))
      return;
    if (spaces_.size() >= spaces_before_look_) {
      std::erase_if(spaces_, [&](const auto& each) { return !table.has(each.first); });
      spaces_before_look_ = std::max(spaces_min, spaces_.size() * 2);
    }
    spaces_.emplace(in->id, std::make_shared<const opened_space>(*in));
  }
  /// Returns null if the space is unknown.
  space_ptr space(space_id id) const {
    auto found = spaces_.find(id);
    return found == spaces_.end() ? nullptr : found->second;
  }
  size_t spaces() const { return spaces_.size(); }

 private:
  static constexpr size_t spaces_min = 64;

  segmented_array<entry_key> parents_; ///< by slot
  std::unordered_map<space_id, space_ptr> spaces_;
  size_t spaces_before_look_ = spaces_min; ///< number at which spaces without objects are looked for
};

} // namespace terrace
