// The objects of a tier, and what others must hear of their changes: its policy, the journals of a durable tier, and
// subscribers. The parts of a residency (residency.hpp) share it.
//
// Pure; used by one thread at a time, except for the index.
#pragma once

#include "base/tier_properties.hpp"
#include "memory/allocator.hpp"
#include "tier/objects/durable_index.hpp"
#include "tier/objects/event_log.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/tier_index.hpp"
#include "tier/policy/policy_messages.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace terrace {

inline extent extent_of(const resident& object) { return {object.offset(), object.physical_bytes()}; }

/// The events of one tier, for the log of its group.
class tier_events {
 public:
  explicit tier_events(tier_kind tier) : tier_(tier) {}

  /// From now on events are kept for `take`, while the log records.
  void record_for(std::shared_ptr<event_log> log) { log_ = std::move(log); }
  void add(note_kind kind, const object_key& key);
  /// Remembers why it has left, whether the log records or not.
  void add_departure(entry_key name, miss_reason why);
  /// Remembers why the tier `by`, this one or one below it, did not take an object.
  void add_refusal(entry_key name, tier_kind by, refusal_reason why);
  /// Subscribers are told of the beginning of a chain first: reverses the events since there were `before`, if all of
  /// them are arrivals. An object that has come and left again keeps its order.
  void chain_first(size_t before);
  size_t size() const { return events_.size(); }
  std::vector<tier_event> take() { return std::exchange(events_, {}); }

 private:
  tier_kind tier_;
  std::shared_ptr<event_log> log_; ///< null: nobody subscribes
  std::vector<tier_event> events_;
};

class tier_objects {
 public:
  tier_objects(tier_kind kind, std::optional<durable_index> durable)
      : events(kind), kind_(kind), durable_(std::move(durable)) {}
  tier_objects(const tier_objects&) = delete;
  tier_objects& operator=(const tier_objects&) = delete;

  resident_table& table() { return index_->table(); }
  const resident_table& table() const { return index_->table(); }
  const std::shared_ptr<tier_index>& index() const { return index_; }
  /// Null: the tier does not survive restarts.
  durable_index* durable() { return durable_ ? &*durable_ : nullptr; }

  /// The object with this name; null: none.
  const resident* named(entry_key name) const;
  object_place place_of(object_id id) const;

  /// Tells the policy, and subscribers of arrivals and departures.
  void note(note_kind kind, const resident& object, entry_key parent = {});
  /// The same for an object that leaves.
  void note_departure(note_kind kind, const resident& object, miss_reason why);
  /// The policy is not told of every hold, only if it names an object that has to stay. It then names it and what it
  /// continues no more.
  void pin(object_id id);
  /// The object may leave: the policy is told so, if it knows otherwise.
  void unpin(object_id id);
  /// Tells the policy alone.
  void tell(const policy_note& note) { notes_.notes.push_back(note); }
  /// Tells the policy of accesses to so many objects of a chain, of which `last` is the last.
  void note_uses(const resident& last, uint32_t objects);
  /// The inference that insertions are for.
  void noted_for(uint64_t inference) { notes_.inference = inference; }
  policy_notes take_notes();

  tier_events events;
  bool evictable = false; ///< an object became evictable since somebody looked

 private:
  tier_kind kind_;
  std::optional<durable_index> durable_;
  std::shared_ptr<tier_index> index_ = std::make_shared<tier_index>();
  policy_notes notes_;
};

} // namespace terrace
