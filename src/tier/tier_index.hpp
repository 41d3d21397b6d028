// What a tier has, for all to read: its actor alone changes it, lookups that hold nothing look into it on their own thread.
#pragma once

#include "index/prefix_plan.hpp"
#include "index/resident_table.hpp"
#include "tier/object_batch.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace terrace {

class tier_index {
 public:
  resident_table& table() { return table_; }
  const resident_table& table() const { return table_; }

  /// Of a tier on several devices: whether what lies at an offset can be had now; called on any thread. What cannot counts
  /// as not there, and may be written anew somewhere else. Before anybody else reads.
  void set_reach(std::function<bool(uint64_t offset)> reaches) { reaches_ = std::move(reaches); }
  bool has_reach() const { return static_cast<bool>(reaches_); }

  bool out_of_reach(const resident& object) const {
    return reaches_ && readable(object.state()) && !reaches_(object.offset());
  }

  /// Looks up keys; `ids[i]` is 0 where nothing can be had.
  void find(std::span<const object_key> keys, std::span<object_id> ids) const {
    table_.find_published(keys, ids);
    if (!reaches_)
      return;
    for (object_id& id : ids)
      if (id != object_id{} && out_of_reach(*table_.get(id)))
        id = {};
  }

  /// Any thread: nothing is there.
  bool empty() const { return table_.published() == 0; }

  /// Any thread: what of the range is there now, parallel to it. None while the tier changes its index: then it has to be
  /// asked.
  std::optional<object_bitmap> try_probe(const object_batch& objects, object_range range) const {
    auto keys = cut(objects, range);
    std::vector<object_id> ids(keys.size());
    if (!table_.read([&](const resident_table&) { find(keys, ids); }))
      return std::nullopt;
    object_bitmap present(keys.size());
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] != object_id{})
        present.set(i);
    return present;
  }

  static std::span<const object_key> cut(const object_batch& objects, object_range range) {
    std::span<const object_key> keys(objects.keys);
    size_t first = std::min(range.first, keys.size());
    return keys.subspan(first, std::min(range.count, keys.size() - first));
  }

 private:
  resident_table table_;
  std::function<bool(uint64_t)> reaches_; ///< empty: everything can be had
};

} // namespace terrace
