// The index of a tier, readable on any thread. Only the tier's actor modifies it; lookups without a lease
// read it on their own thread.
#pragma once

#include "index/prefix_plan.hpp"
#include "index/resident_table.hpp"
#include "tier/objects/object_batch.hpp"

#include <algorithm>
#include <array>
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

  /// Sets, for a tier on several devices, how to tell whether an offset is reachable now; `reaches` is called
  /// on any thread. Unreachable objects count as misses, and may be written again elsewhere. Call it before
  /// other threads read.
  void set_reach(std::function<bool(uint64_t offset)> reaches) { reaches_ = std::move(reaches); }
  bool has_reach() const { return static_cast<bool>(reaches_); }

  bool out_of_reach(const resident& object) const {
    return reaches_ && readable(object.state()) && !reaches_(object.offset());
  }

  /// Looks up keys; `ids[i]` is 0 if object i is absent or unreachable.
  void find(std::span<const object_key> keys, std::span<object_id> ids) const {
    table_.find_published(keys, ids);
    leave_out_of_reach(ids);
  }

  /// Safe on any thread: true if nothing is present.
  bool empty() const { return table_.published() == 0; }

  /// Safe on any thread: true if no object has these keys, not even one being written. Returns false while
  /// the tier modifies its index.
  bool surely_lacks(const object_batch& objects) const {
    bool lacks = true;
    bool read = table_.read([&](const resident_table& table) {
      for (const object_key& key : objects.keys)
        lacks = lacks && !table.find(key);
    });
    return read && lacks;
  }

  /// Safe on any thread: the first object of [begin, end) that is present or being written; `end`: none.
  /// Returns `begin` while the tier modifies its index.
  size_t first_present(const object_batch& objects, size_t begin, size_t end) const {
    size_t first = begin;
    bool read = table_.read([&](const resident_table& table) {
      while (first < end && !table.find(objects.keys[first]))
        ++first;
    });
    return read ? first : begin;
  }

  /// Safe on any thread: which objects are present, parallel to the keys. Nullopt while the tier modifies its
  /// index: then ask the tier.
  std::optional<object_bitmap> try_probe(std::span<const object_key> keys) const {
    return probe(keys.size(), [&](std::span<object_id> ids) { table_.find_published(keys, ids); });
  }

  /// Does the same for the keys that equal `like` except for their chunks.
  std::optional<object_bitmap> try_probe(const object_key& like, std::span<const digest> chunks) const {
    return probe(chunks.size(), [&](std::span<object_id> ids) { table_.find_published(like, chunks, ids); });
  }

  static std::span<const object_key> cut(const object_batch& objects, object_range range) {
    std::span<const object_key> keys(objects.keys);
    size_t first = std::min(range.first, keys.size());
    return keys.subspan(first, std::min(range.count, keys.size() - first));
  }

 private:
  void leave_out_of_reach(std::span<object_id> ids) const {
    if (!reaches_)
      return;
    for (object_id& id : ids)
      if (id != object_id{} && out_of_reach(*table_.get(id)))
        id = {};
  }

  /// `find`: see `find_published`.
  template <class Find>
  std::optional<object_bitmap> probe(size_t objects, Find&& find) const {
    std::array<object_id, 128> few; // enough for a short lookup
    std::vector<object_id> many(objects <= few.size() ? 0 : objects);
    auto ids = many.empty() ? std::span(few).first(objects) : std::span(many);
    bool read = table_.read([&](const resident_table&) {
      find(ids);
      leave_out_of_reach(ids);
    });
    if (!read)
      return std::nullopt;
    return object_bitmap::of(objects, [&](size_t i) { return ids[i] != object_id{}; });
  }

  resident_table table_;
  std::function<bool(uint64_t)> reaches_; ///< empty: everything is reachable
};

} // namespace terrace
