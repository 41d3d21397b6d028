// What has happened to the objects of a trust group's tiers, in order, for whoever subscribes to it.
//
// A subscriber first gets the objects that are there, tier by tier, and then every event since the sequence number at which
// that began. Applied in this order, both give what the tiers have: an event that the snapshot already shows changes nothing.
#pragma once

#include "base/ids.hpp"
#include "base/object_key.hpp"
#include "base/request_context.hpp"
#include "tier/objects/tier_index.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace terrace {

/// The numbers are part of the protocol.
enum class event_kind : uint8_t {
  admit = 1,  ///< the tier has the object from now on
  evict = 2,  ///< it has it no longer, to make room
  demote = 3, ///< the same, and a tier below has it
  clear = 4,  ///< it was removed: cleared, evicted by an operator, replaced, damaged
};

struct tier_event {
  uint64_t sequence = 0; ///< from 2 on, without gaps
  event_kind what{};
  tier_kind tier = tier_kind::none;
  object_key key;
};

/// Keeps the last events. Records nothing until somebody has subscribed. Safe on any thread; neither side waits for the
/// other: a reader that is too slow has lost the thread, and is told so.
class event_log {
 public:
  static constexpr size_t events_max = 65'536; ///< about 4 MiB

  explicit event_log(size_t kept_max = events_max) : kept_max_(kept_max) {}

  bool records() const { return records_.load(std::memory_order_relaxed); }
  /// Records from now on. Returns the number of the last event.
  uint64_t begin() {
    records_.store(true, std::memory_order_seq_cst);
    std::lock_guard lock(mutex_);
    last_ = std::max<uint64_t>(last_, 1); // 0 is the cursor of a new subscription
    return last_;
  }

  /// A tier of the group: what leaves a faster one is demoted if this one has it.
  void knows(tier_kind tier, std::shared_ptr<const tier_index> index) {
    std::lock_guard lock(mutex_);
    indexes_.emplace_back(tier, std::move(index));
  }

  /// In their order; gives them numbers.
  void append(std::span<tier_event> events) {
    std::vector<waiter> told;
    {
      std::lock_guard lock(mutex_);
      for (tier_event& event : events) {
        if (event.what == event_kind::evict && is_below(event))
          event.what = event_kind::demote;
        event.sequence = ++last_;
        kept_.push_back(event);
      }
      while (kept_.size() > kept_max_)
        kept_.pop_front();
      assert(kept_.size() <= kept_max_);
      told.swap(waiting_);
    }
    for (const waiter& each : told)
      each.tell();
  }

  /// There is more than the events tell: every subscriber has lost the thread.
  void forget() {
    std::vector<waiter> told;
    {
      std::lock_guard lock(mutex_);
      kept_.clear();
      ++last_;
      told.swap(waiting_);
    }
    for (const waiter& each : told)
      each.tell();
  }

  struct part {
    std::vector<tier_event> events;
    bool lost = false;   ///< the event behind `after` is not kept any more, or never was
    uint64_t oldest = 0; ///< kept
    uint64_t last = 0;   ///< that there is
  };
  /// The events behind number `after`, at most `count_max`.
  part read(uint64_t after, size_t count_max) const {
    std::lock_guard lock(mutex_);
    part found;
    found.last = last_;
    found.oldest = last_ - kept_.size() + 1;
    found.lost = after > last_ || after + 1 < found.oldest;
    if (found.lost)
      return found;
    auto first = kept_.begin() + static_cast<ptrdiff_t>(after + 1 - found.oldest);
    auto count = static_cast<ptrdiff_t>(std::min<uint64_t>(count_max, last_ - after));
    found.events.assign(first, first + count);
    return found;
  }

  /// Calls `tell`, on any thread, when there is an event behind `after`, unless `context` has ended by then. At once if
  /// there is one.
  void wait(uint64_t after, context_ptr context, std::function<void()> tell) {
    {
      std::lock_guard lock(mutex_);
      std::erase_if(waiting_, [](const waiter& each) { return !each.context->live(); });
      if (after >= last_) {
        waiting_.push_back({std::move(context), std::move(tell)});
        return;
      }
    }
    tell();
  }
  size_t waiting() const {
    std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  struct waiter {
    context_ptr context;
    std::function<void()> tell;
  };
  bool is_below(const tier_event& event) const {
    object_batch one;
    one.keys = {event.key};
    return std::any_of(indexes_.begin(), indexes_.end(), [&](const auto& each) {
      auto there = each.first > event.tier ? each.second->try_probe(one.keys) : std::nullopt;
      return there && there->test(0);
    });
  }

  const size_t kept_max_;
  std::atomic<bool> records_{false};
  mutable std::mutex mutex_;
  std::deque<tier_event> kept_;
  std::vector<std::pair<tier_kind, std::shared_ptr<const tier_index>>> indexes_;
  uint64_t last_ = 0;
  std::vector<waiter> waiting_; ///< requests in flight
};

} // namespace terrace
