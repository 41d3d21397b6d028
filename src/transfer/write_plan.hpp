// One notice to a tier: which of its objects are to be written there, and why the others are not. Its passage brings them.
//
// Pure: the write-through actor asks the tiers and the policy, and passes their answers to this class. In order:
// `omit_present`, `admission` and `admitted`, `pay`, `journey` and `space` (transfer/passage.hpp), `add_passage`, `end`. Used by
// one thread at a time.
#pragma once

#include "base/eviction_types.hpp"
#include "tier/messages.hpp"
#include "tier/policy/policy_messages.hpp"
#include "transfer/passage.hpp"
#include "transfer/write_through_messages.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace terrace {

// A limit on bytes written per day, to protect flash from wear or because they are paid for, and on those written per
// second, to leave a link to others: a token bucket for each.
//
// The buckets hold one hour's share and one second's, and start full: a burst is allowed without raising the average.
// Pure, one thread; the time is passed in.

class write_budget {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  write_budget(const write_rates& rates, time_point now);
  /// From now on these are the rates. The bucket of one that has changed is full; what the other has left stays.
  void set(const write_rates& rates, time_point now);

  /// Takes the bytes, or takes nothing and returns false. A request larger than a bucket succeeds when the
  /// bucket is full, and is paid off afterwards.
  bool take(uint64_t bytes, time_point now);

  /// Returns bytes that were taken but not written.
  void give_back(uint64_t bytes);

  /// Of the bucket that has fewer; INT64_MAX: no limit. Negative while a request larger than the bucket is being paid off.
  int64_t left(time_point now);

 private:
  struct bucket {
    double capacity = 0; ///< 0: no limit
    double per_second = 0;
    double tokens = 0;
    time_point filled{};

    void refill(time_point now);
    bool has(double bytes) const { return capacity == 0 || tokens >= std::min(bytes, capacity); }
    void put_back(double bytes) { tokens = std::min(capacity, tokens + bytes); }
  };
  static bucket full(uint64_t capacity, double per_second, time_point now);

  write_rates rates_{};
  bucket day_, second_;
};

/// Owns the notice, and with it the holds of its objects.
class write_plan {
 public:
  explicit write_plan(write_through_notice notice);

  uint64_t bytes() const { return bytes_; } ///< payload of all objects of the notice
  size_t objects() const { return what_.objects->size(); }
  bool wants_any() const { return wanted() != 0; }
  size_t wanted() const; ///< objects that are not refused and not known to be present

  // ---- replaceable objects ----

  bool replaceable() const { return what_.replaceable; }
  /// The others are not written: something else has their keys. `current`: parallel to the notice's objects.
  void drop_replaced(const std::vector<bool>& current);
  /// To begin again, after others who wrote some of the objects: that may have been what these have replaced.
  write_through_notice again() { return std::move(what_); }

  // ---- admission. Objects are in chain order: after one that is refused, the rest is refused as well ----

  /// Returns how many are refused.
  uint64_t refuse_all() { return refuse_from(0); }
  /// The names of those that were refused since the last call.
  std::vector<entry_key> take_refused() { return std::exchange(refused_, {}); }
  /// The names of these objects of the notice.
  std::vector<entry_key> names_of(const std::vector<size_t>& objects) const;

  probe_request probe() const { return {what_.objects, false, false}; }
  /// The tier already has these.
  void omit_present(const object_bitmap& present);

  /// Asks about the wanted objects, except those from the first on that fit into `room_bytes`, because they evict nothing.
  /// No entries: all are admitted.
  admit_request admission(tier_kind tier, admission_rule rule, uint64_t room_bytes);
  /// The answer to the last `admission`. Returns how many are refused.
  uint64_t admitted(size_t count);

  /// Takes the bytes of the wanted objects from the budget. Returns how many are refused.
  uint64_t pay(write_budget& budget, write_budget::time_point now);
  /// At the end: returns the bytes of objects that got no space in the tier.
  void return_unspent(write_budget& budget) const;

  // ---- writing ----

  /// The way of the objects out of the tier `from`, which holds them.
  passage::plan journey(tier_kind from, direction way, const segmented_arena& memory,
                        const context_ptr& context) const;
  /// Space in the tier for the wanted objects. It does not wait: a tier in which everything is leased refuses, and host
  /// memory must not wait for it.
  acquire_request space() const;
  /// What has become of them, once the passage is over.
  void add_passage(const passage& over);

  /// Another passage writes some of the wanted objects: this one ends after it.
  bool others_write() const { return others_write_; }
  await_request await_others() const { return {what_.objects, nullptr}; }

  /// What was published, for tiers further down: held where it arrived. What was not is absent.
  write_through_notice onward(const passage& over) const;

  // ---- for whoever asked for the notice's objects to be written ----

  demote_answer& told() { return told_; }
  /// Ends the hold, returns the credit and answers, if somebody asked.
  void end();

 private:
  uint64_t refuse_from(size_t i);

  write_through_notice what_;
  uint64_t bytes_ = 0;
  std::vector<entry_key> refused_;
  std::vector<bool> wanted_;   ///< parallel to the notice's objects: still where they come from, and admitted
  std::vector<size_t> asked_;  ///< the objects of the last `admission`
  std::vector<uint64_t> paid_; ///< parallel to the notice's objects: bytes of the budget; empty: no payment
  bool others_write_ = false;
  demote_answer told_;
};

} // namespace terrace
