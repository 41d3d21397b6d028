// The events of the objects in a trust group's tiers, in order, for subscribers.
//
// A subscriber first gets the objects that are present, tier by tier, and then every event since the sequence
// number at which that began. Applied in this order, both give the contents of the tiers: an event that the
// snapshot already shows changes nothing.
#pragma once

#include "base/change_count.hpp"
#include "base/ids.hpp"
#include "base/object_key.hpp"
#include "base/tier_properties.hpp"
#include "index/space_spec.hpp"
#include "tier/objects/departure_log.hpp"
#include "tier/objects/tier_index.hpp"

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cassert>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace {

/// The numbers are part of the protocol.
enum class event_kind : uint8_t {
  admit = 1,  ///< the tier has the object from now on
  evict = 2,  ///< the tier evicted it to make room
  demote = 3, ///< evicted, and a tier below has it
  clear = 4,  ///< it was removed: cleared, evicted by an operator, replaced, damaged
};

struct tier_event {
  uint64_t sequence = 0; ///< from 2 on, without gaps
  event_kind kind{};
  tier_kind tier = nowhere;
  object_key key;
  uint32_t chunk_objects =
      0; ///< how many objects of the chunk a prefix needs, this one included; 0: see `chunk_need`
};

/// The objects that a prefix needs of each chunk of a space: those of pools that need all chunks, or of all
/// pools if there is no such pool.
class chunk_need {
 public:
  explicit chunk_need(const space_spec& spec) {
    bool any = std::any_of(spec.pools.begin(), spec.pools.end(), needs_all_chunks);
    for (size_t pool = 0; pool < spec.pools.size(); ++pool)
      if (!any || needs_all_chunks(spec.pools[pool])) {
        pools_.set(pool);
        objects_ += spec.pools[pool].replicated ? 1 : spec.world_size;
      }
  }
  /// Returns 0 if a prefix does not need objects of this pool of each chunk.
  uint32_t objects(uint16_t pool) const { return pool < pools_.size() && pools_.test(pool) ? objects_ : 0; }

 private:
  static bool needs_all_chunks(const pool_spec& pool) { return pool.rule == hit_rule::all_chunks; }
  std::bitset<space_spec::pools_max> pools_;
  uint32_t objects_ = 0;
};

/// Keeps the last events. Records nothing until somebody has subscribed. Safe on any thread. Neither side
/// waits for the other: a reader that is too slow loses events, and is told so.
class event_log {
 public:
  static constexpr size_t events_max = 65'536; ///< about 4 MiB

  /// `seconds`: the clock of departures.
  explicit event_log(
      size_t kept_max = events_max, uint32_t (*seconds)() = [] { return uint32_t{0}; })
      : kept_max_(kept_max), departures_(seconds) {}

  /// Why objects have left, whether anybody has subscribed or not.
  departure_log& departures() { return departures_; }
  const departure_log& departures() const { return departures_; }

  bool records() const { return records_.load(std::memory_order_relaxed); }
  /// Records from now on. Returns the number of the last event.
  uint64_t begin() {
    records_.store(true, std::memory_order_seq_cst);
    uint64_t last = 0;
    {
      std::lock_guard lock(mutex_);
      last_ = last = std::max<uint64_t>(last_, 1); // a new subscription has the cursor 0
    }
    changes_.reach(last);
    return last;
  }

  /// Registers a tier of the group: an object that leaves a faster tier counts as demoted if this one has it.
  void knows(tier_kind tier, std::shared_ptr<const tier_index> index) {
    std::lock_guard lock(mutex_);
    indexes_.emplace_back(tier, std::move(index));
  }

  /// A space was opened. If subscribers were told of its objects before anybody knew how many of them a prefix needs of
  /// a chunk, every subscriber has lost events: those objects are from before the daemon started.
  void opened(space_id space, const space_spec& spec) {
    bool told = false;
    {
      std::lock_guard lock(mutex_);
      if (needs_.try_emplace(space, spec).second)
        told = told_unknown_.erase(space) != 0;
    }
    if (told)
      forget();
  }
  /// No tier has an object of these spaces; their numbers mean nothing from now on.
  void forgotten(std::span<const space_id> spaces) {
    std::lock_guard lock(mutex_);
    for (space_id space : spaces) {
      needs_.erase(space);
      told_unknown_.erase(space);
    }
  }
  /// Fills in `chunk_objects` of the events of a snapshot.
  void count_chunk_objects(std::span<tier_event> events) {
    std::lock_guard lock(mutex_);
    for (tier_event& event : events)
      count_chunk_objects(event);
  }

  /// Appends the events in their order and gives them numbers.
  void append(std::span<tier_event> events) {
    uint64_t last = 0;
    {
      std::lock_guard lock(mutex_);
      for (tier_event& event : events) {
        if (event.kind == event_kind::evict && is_below(event))
          event.kind = event_kind::demote;
        event.sequence = ++last_;
        count_chunk_objects(event);
        kept_.push_back(event);
      }
      while (kept_.size() > kept_max_)
        kept_.pop_front();
      assert(kept_.size() <= kept_max_);
      last = last_;
    }
    changes_.reach(last);
  }

  /// The events do not tell everything: every subscriber has lost some.
  void forget() {
    uint64_t last = 0;
    {
      std::lock_guard lock(mutex_);
      kept_.clear();
      last = ++last_;
    }
    changes_.reach(last);
  }

  struct part {
    std::vector<tier_event> events;
    bool lost = false;   ///< the event behind `after` is no longer kept, or never was
    uint64_t oldest = 0; ///< number of the oldest event that is kept
    uint64_t last = 0;   ///< number of the last event
  };
  /// Returns the events behind number `after`, at most `count_max`.
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

  change_count& changes() { return changes_; } ///< its number is that of the last event

 private:
  bool is_below(const tier_event& event) const {
    object_batch one;
    one.keys = {event.key};
    return std::any_of(indexes_.begin(), indexes_.end(), [&](const auto& each) {
      auto there = each.first > event.tier ? each.second->try_probe(one.keys) : std::nullopt;
      return there && there->test(0);
    });
  }

  void count_chunk_objects(tier_event& event) {
    auto need = needs_.find(event.key.space);
    if (need == needs_.end())
      told_unknown_.insert(event.key.space);
    else
      event.chunk_objects = need->second.objects(event.key.pool);
  }

  const size_t kept_max_;
  departure_log departures_;
  std::atomic<bool> records_{false};
  mutable std::mutex mutex_;
  std::deque<tier_event> kept_;
  std::vector<std::pair<tier_kind, std::shared_ptr<const tier_index>>> indexes_;
  uint64_t last_ = 0;
  std::unordered_map<space_id, chunk_need> needs_; ///< needs of the spaces that were opened and not forgotten
  std::set<space_id> told_unknown_;                ///< other spaces, of whose objects somebody was told
  change_count changes_;
};

} // namespace terrace
