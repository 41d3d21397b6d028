// Notices of objects that later ones with the same keys replace, and that wait a while before they are written: an object
// that is replaced meanwhile is never written, so a value that is set again and again costs a write now and then.
//
//   line.push(notice); ... line.ripen();             // what waits now may be written
//   while (auto next = line.next()) ... write next->notice, but for the objects that next->current does not name
//
// An object's place in the line is that of its last notice. A notice all of whose objects are replaced ends at once, with its
// hold and its credit. Pure: used by one thread at a time.
#pragma once

#include "base/object_key.hpp"
#include "index/object_header.hpp"
#include "transfer/write_through_messages.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace {

class replaceable_line {
 public:
  void push(write_through_notice notice) { add(std::move(notice), true); }

  /// One whose objects could not be written at its turn. What has come after it counts as later.
  void push_again(write_through_notice notice) { add(std::move(notice), false); }

  /// All that wait now may be written.
  void ripen() { ripe_ = first_ + waiting_.size(); }

  struct turn {
    write_through_notice notice;
    std::vector<bool> current; ///< parallel to its objects: not replaced
  };
  bool has_next() const { return !waiting_.empty() && first_ < ripe_; }
  /// The next that may be written. Nullopt: none.
  std::optional<turn> next() {
    if (!has_next())
      return std::nullopt;
    turn one{std::move(waiting_.front().notice), {}};
    assert(waiting_.front().current != 0);
    for (const object_key& key : one.notice.objects->keys) {
      auto newest = newest_.find(to_entry_key(key));
      one.current.push_back(newest != newest_.end() && newest->second == first_);
      if (one.current.back())
        newest_.erase(newest);
    }
    bytes_ -= waiting_.front().bytes;
    drop_first();
    return one;
  }

  bool empty() const { return waiting_.empty(); }
  uint64_t bytes() const { return bytes_; } ///< physical, of all that wait
  size_t objects() const { return newest_.size(); }

 private:
  struct entry {
    write_through_notice notice;
    size_t current = 0; ///< objects that are not replaced; 0: it has ended
    uint64_t bytes = 0;
  };

  void add(write_through_notice notice, bool is_later) {
    entry one{std::move(notice), 0, 0};
    uint64_t number = first_ + waiting_.size();
    const object_batch& objects = *one.notice.objects;
    for (size_t i = 0; i < objects.size(); ++i) {
      auto [newest, added] = newest_.try_emplace(to_entry_key(objects.keys[i]), number);
      if (!added && (!is_later || newest->second == number))
        continue;
      if (!added)
        replaced(std::exchange(newest->second, number));
      ++one.current;
      one.bytes += physical_bytes_for(objects.payload_bytes[i]);
    }
    if (one.current == 0)
      return;
    bytes_ += one.bytes;
    waiting_.push_back(std::move(one));
    drop_ended();
  }

  /// An object of this entry.
  void replaced(uint64_t number) {
    entry& earlier = waiting_[number - first_];
    if (--earlier.current != 0)
      return;
    bytes_ -= earlier.bytes;
    earlier.notice = {};
  }

  void drop_first() {
    waiting_.pop_front();
    ++first_;
    drop_ended();
  }
  void drop_ended() {
    while (!waiting_.empty() && waiting_.front().current == 0) {
      waiting_.pop_front();
      ++first_;
    }
  }

  std::deque<entry> waiting_; ///< in order; those that have ended stay until they are first
  uint64_t first_ = 0;        ///< number of the first that waits; ascending
  uint64_t ripe_ = 0;         ///< number of the first that may not be written yet
  std::unordered_map<entry_key, uint64_t>
      newest_; ///< of each object the number of its last notice that waits
  uint64_t bytes_ = 0;
};

} // namespace terrace
