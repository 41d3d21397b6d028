// The consequences of a change of a tier's objects: records for its journals, notes for its policy, space for
// its allocator; and the round of eviction in progress.
//
// Pure: the tier actor sends what is returned here. Used by one thread at a time.
#pragma once

#include "base/tier_properties.hpp"
#include "tier/messages.hpp"
#include "tier/objects/residency.hpp"
#include "tier/policy/note_queue.hpp"
#include "tier/space/eviction_round.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

// Notices about many objects, applied to a tier's objects in steps.

/// The end of a lease on a million objects is one notice; other requests are served between its steps.
/// Notices are applied in order of arrival. Pure; used by one thread at a time.
class long_notices {
 public:
  static constexpr size_t step_objects = 1'024; ///< a notice of at most this many objects is applied at once

  void add(release_notice&& added) { line_.push_back({kind::release, std::move(added.ids)}); }
  void add(discard_notice&& added) { line_.push_back({kind::discard, std::move(added.ids), added.why}); }

  struct outcome {
    std::vector<extent> freed;
    uint64_t discarded = 0; ///< objects
    discard_reason why = discard_reason::damaged;
  };
  /// Precondition: not empty.
  outcome step(residency& objects);
  bool empty() const { return line_.empty(); }

 private:
  enum class kind : uint8_t { release, discard };
  struct notice {
    kind what;
    std::vector<object_id> ids;
    discard_reason why = discard_reason::damaged;
    size_t done = 0;
  };
  std::deque<notice> line_;
};

class tier_changes {
 public:
  /// `objects` may be null: the tier has none yet.
  explicit tier_changes(tier_kind kind = nowhere, std::unique_ptr<residency> objects = nullptr)
      : kind_(kind), objects_(objects ? std::move(objects) : std::make_unique<residency>(kind)) {}

  tier_kind kind() const { return kind_; }
  residency& objects() { return *objects_; }
  const residency& objects() const { return *objects_; }

  /// The tier actor sends these after each turn, in this order.
  struct news {
    std::vector<index_change> records; ///< go to the journals of a durable tier
    policy_notes notes;                ///< go to the policy; empty: none, or they are kept
    bool mark = false;                 ///< a `notes_mark` follows the notes
    uint64_t retired_objects = 0;      ///< for the metrics: objects that left with their segment
    uint64_t retired_bytes = 0;
    std::vector<extent> freed; ///< go to the allocator
    bool changed =
        false; ///< something was freed or became evictable: tells those who wait in front of the allocator
    bool evictable = false; ///< tells the allocator, whose last round failed, that another may succeed

    bool empty() const { return records.empty() && notes.notes.empty() && !changed && retired_objects == 0; }
  };
  /// Extents of objects that are gone: a round that is lent the space gets them now, else the allocator gets them with the
  /// news.
  void free(const std::vector<extent>& extents);
  /// Returns the news of all changes since the last call.
  news drain_news();

  /// Notes that the policy has not received yet. They are sent before a request to it, and after `marked`.
  struct kept_notes {
    std::vector<policy_notes> batches;
    bool mark = false; ///< a `notes_mark` follows
  };
  kept_notes take_kept_notes();
  /// A mark has returned.
  void marked() { notes_.marked(); }

  /// Reports for status, without the numbers that only the metrics count: hits, misses, bytes moved.
  tier_report report(const usage_answer& usage) const;

  // ---- a round of eviction, started by the allocator ----

  const eviction_round* round() const { return round_.get(); } ///< null: no round
  void begin(std::shared_ptr<eviction_round> round);
  /// Returns the question to the policy; call it after `take_kept_notes`.
  victim_request question();
  /// The policy's answer: chooses among the victims.
  void choose(victim_answer named);
  /// The policy has ended.
  void give_up(std::string why) { round_->give_up(std::move(why)); }

  /// If victims are chosen, they are written to tiers below before `evict`. Returns their ids, as
  /// `object_departures::begin_demotion` does; empty: none are chosen.
  std::vector<object_id> begin_demotion();

  struct eviction {
    uint64_t objects = 0;
    uint64_t bytes = 0;
    uint64_t excess_bytes = 0; ///< more than were missing
    bool ahead = false;        ///< made room ahead of demand
    bool own = false;          ///< made room for a tenant at its bound
  };
  /// Evicts the chosen victims; nullopt: none are chosen. The news are sent before the round ends, so that the policy is
  /// up to date before anybody gets the space.
  std::optional<eviction> evict();
  /// Returns the round, if it has ended; null: the policy has to be asked again.
  std::shared_ptr<eviction_round> take_ended();

 private:
  tier_kind kind_;
  std::unique_ptr<residency> objects_;
  note_queue notes_;
  std::vector<extent> freed_;                     ///< extents of the next news
  bool changed_ = false;                          ///< something was freed since the last news
  std::shared_ptr<eviction_round> round_;         ///< set while a round is in progress
  std::optional<std::vector<object_id>> demoted_; ///< its victims, if they are written to tiers below
  bool relieved_ = false;    ///< in this round, objects of tenants beyond their share may be named again
  bool owes_notice_ = false; ///< a round failed, and nothing became evictable since
  /// Failed rounds, and how many of them were followed by a notice of something evictable.
  uint64_t failed_rounds_ = 0, notices_ = 0;
};

} // namespace terrace
