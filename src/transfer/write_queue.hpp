// The notices that wait to be written to a tier below, and how many bytes of them are written at a time.
//
// Pure: used by one thread at a time.
#pragma once

#include "base/fair_queue.hpp"
#include "base/object_key.hpp"
#include "base/request_context.hpp"
#include "index/object_header.hpp"
#include "memory/segmented_arena.hpp"
#include "tier/space/write_credit.hpp"
#include "transfer/write_plan.hpp"
#include "transfer/write_through_messages.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace {

/// Limits how much of host memory may wait for a tier below. A store takes credit before it takes memory, so a burst of
/// stores leaves room for loads, and waits for the disk itself.
class write_credits {
 public:
  /// `ok`: the bytes are taken. Otherwise it says why the request ended while it waited.
  using reply = std::function<void(errc)>;

  explicit write_credits(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  /// The total credit follows an arena that grows or shrinks. Credits that are out stay out, and waiting
  /// requests are served with the next change.
  void set_bytes_max(uint64_t bytes_max) { bytes_max_ = bytes_max; }

  /// Connections get equal shares of the bytes (base/fair_queue.hpp). Smaller requests that fit may pass the
  /// first one that waits, among the first eight of each connection, together with as many bytes as it asks
  /// for. A request for more than the total credit is served when nothing else is outstanding.
  void ask(uint64_t bytes, context_ptr context, reply answer);
  /// Takes the bytes if they are available and no request waits.
  bool try_take(uint64_t bytes);
  void give_back(uint64_t bytes);
  /// Answers requests that have ended.
  void sweep();

  uint64_t bytes_max() const { return bytes_max_; }
  uint64_t out() const { return out_; }
  size_t waiting() const { return line_.size(); }

 private:
  struct waiting_request {
    uint64_t bytes = 0;
    uint64_t passing_left = 0; ///< bytes by which others may still pass it while it is first
    uint64_t number = 0;       ///< in order of arrival
    context_ptr context;
    reply answer;
  };
  bool fits(uint64_t bytes) const { return out_ == 0 || out_ + bytes <= bytes_max_; }
  turn offer(waiting_request& entry);
  void serve();

  uint64_t bytes_max_;
  uint64_t out_ = 0;
  uint64_t arrived_ = 0;
  fair_queue<waiting_request> line_;
};

class credit_issuer {
 public:
  /// `bytes_max`: of host memory that may wait, writes in progress included. A limit becomes half of `memory` when that
  /// changes its size; UINT64_MAX: none. `memory` may be null. `sink`: where credits are returned.
  credit_issuer(uint64_t bytes_max, std::shared_ptr<const segmented_arena> memory, credit_sink_ptr sink);

  /// Answers at once, or when there is enough credit, or the request ends.
  void issue(const write_credit_request& request, std::function<void(write_credit_answer)> answer);
  /// Gives the notice a credit if it has none. False: none is free, and it is dropped.
  bool admit(write_through_notice& notice);
  void put_back(const write_credit_notice& notice);
  /// Requests that wait for credit.
  size_t waiting() const { return credits_.waiting(); }
  uint64_t bytes_max() const { return credits_.bytes_max(); }
  /// Answers requests that have ended.
  void sweep() { credits_.sweep(); }

 private:
  void follow_memory();
  credit_ptr credit_of(uint64_t bytes) const { return std::make_shared<write_credit>(sink_, bytes); }

  std::shared_ptr<const segmented_arena> memory_; ///< null: the limit stays
  credit_sink_ptr sink_;
  write_credits credits_;
};

// Notices of objects that later ones with the same keys replace, and that wait a while before they are written: an object
// that is replaced meanwhile is never written, so a value that is set again and again costs a write now and then.
//
//   line.push(notice); ... line.ripen();             // what waits now may be written
//   while (auto next = line.next()) ... write next->notice, but for the objects that next->current does not name
//
// An object's place in the line is that of its last notice. A notice all of whose objects are replaced ends at once, with its
// hold and its credit. Pure: used by one thread at a time.

class replaceable_writes {
 public:
  void push(write_through_notice notice) { add(std::move(notice), true); }

  /// One whose objects could not be written at its turn. What has come after it counts as later.
  void push_again(write_through_notice notice) { add(std::move(notice), false); }

  /// All that wait now may be written.
  void release_delayed() { ripe_ = first_ + waiting_.size(); }

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

class write_queue {
 public:
  /// Notices of replaceable objects in progress at a time: others are not to wait for many small ones.
  static constexpr size_t replaceable_max = 8;

  /// `bytes_max`: payload in progress; a single larger notice is written alone.
  explicit write_queue(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  /// Replaceable ones wait until `ripen`, and then take turns with the others.
  void push(write_through_notice notice) {
    if (notice.replaceable)
      replaceable_.push(std::move(notice));
    else
      waiting_.push_back(std::move(notice));
  }
  /// A replaceable one whose passage is done, and which could not write everything, because others wrote the same objects.
  void push_again(write_through_notice notice) { replaceable_.push_again(std::move(notice)); }
  /// The replaceable ones that wait now may be written.
  void release_delayed() { replaceable_.release_delayed(); }
  const replaceable_writes& replaceable() const { return replaceable_; }
  /// Before all that are not urgent, whose writers wait for nothing.
  void push_urgent(write_through_notice notice) {
    waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(urgent_), std::move(notice));
    ++urgent_;
  }

  /// The next to write, in progress until `done`. Nullopt: none waits, or there is no room.
  std::optional<write_plan> next() {
    bool may_replaceable = replaceable_.has_next() && replaceable_in_progress_ < replaceable_max;
    if ((waiting_.empty() && !may_replaceable) || (bytes_ != 0 && bytes_ >= bytes_max_))
      return std::nullopt;
    bool replaceable = waiting_.empty() || (may_replaceable && urgent_ == 0 && replaceable_turn_);
    replaceable_turn_ = !replaceable;
    std::optional<write_plan> first;
    if (replaceable) {
      auto turn = replaceable_.next();
      first.emplace(std::move(turn->notice));
      first->drop_replaced(turn->current);
      ++replaceable_in_progress_;
    } else {
      first.emplace(std::move(waiting_.front()));
      waiting_.pop_front();
      urgent_ -= urgent_ == 0 ? 0 : 1;
    }
    assert(bytes_ < bytes_max_ || bytes_ == 0);
    bytes_ += first->bytes();
    ++in_progress_;
    return first;
  }
  void done(const write_plan& plan) {
    assert(in_progress_ != 0 && bytes_ >= plan.bytes());
    bytes_ -= plan.bytes();
    --in_progress_;
    replaceable_in_progress_ -= plan.replaceable() ? 1 : 0;
  }

  bool idle() const { return waiting_.empty() && replaceable_.empty() && in_progress_ == 0; }

 private:
  uint64_t bytes_max_;
  std::deque<write_through_notice> waiting_;
  size_t urgent_ = 0; ///< of these, at the front
  replaceable_writes replaceable_;
  bool replaceable_turn_ = false; ///< whose turn it is
  size_t replaceable_in_progress_ = 0;
  uint64_t bytes_ = 0; ///< in progress
  size_t in_progress_ = 0;
};

} // namespace terrace
