// The consequences of a change of a tier's objects: records for its journals, notes for its policy, space for
// its allocator; and the round of eviction in progress.
//
// Pure: the tier actor sends what is returned here. Used by one thread at a time.
#pragma once

#include "base/tier_properties.hpp"
#include "tier/messages.hpp"
#include "tier/objects/residency.hpp"
#include "tier/policy/policy_messages.hpp"
#include "tier/space/eviction_round.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace terrace {

// The notes of a tier for its policy, with a bound on those in flight: if a policy falls behind, notes are
// merged instead of growing its mailbox.

/// The tier sends batches of notes freely, and after every few of them a mark, which the policy returns when
/// it reaches it. With `marks_max` marks outstanding the tier sends nothing more: notes are kept here in
/// order until a mark returns or the tier needs victims (that request must follow all earlier events; there
/// is one at a time, and its answer is as good as a mark).
///
/// Among kept notes, a later access to an object replaces an earlier one, and a later hold or release an
/// earlier one: the policy counts such accesses as one. Nothing is merged across the object's insertion or
/// removal. So at most two notes are kept per object, in addition to insertions and removals, of which there
/// are no more than fit into the arena before victims are needed.
///
/// Belongs to one tier actor.
class note_queue {
 public:
  static constexpr size_t batches_between_marks = 32;
  static constexpr size_t marks_max = 2;
  static constexpr size_t kept_uses_max = 1 << 18; ///< accesses that are kept; further ones are dropped

  /// Returns true if `batch` may be sent; it then counts as sent. Otherwise its notes are kept, and it is empty.
  bool admits(policy_notes& batch);

  /// Call after each batch. Returns true if a mark must follow it now, and counts the mark as sent.
  bool mark_due();

  /// A mark has returned: kept notes may be sent.
  void marked() {
    assert(marks_ != 0);
    --marks_;
  }

  /// Returns all kept notes in order, in as few batches as possible; they count as one batch. Empty: there were none.
  std::vector<policy_notes> take();

  size_t kept() const { return kept_.size() - dead_; }

 private:
  struct kept_note {
    policy_note note;
    uint64_t inference = 0;
    bool dead = false; ///< a later note has replaced it
  };
  struct positions { ///< positions in `kept_`, plus one; 0: none
    size_t use = 0;
    size_t hold = 0;
  };

  void keep(policy_note note, uint64_t inference);
  void replace(size_t& position);
  void compact();

  size_t since_mark_ = 0;
  size_t marks_ = 0; ///< outstanding marks
  tier_kind tier_ = nowhere;
  std::vector<kept_note> kept_;
  size_t dead_ = 0;
  size_t kept_uses_ = 0; ///< accesses in `kept_`, those of dead notes as well
  std::unordered_map<entry_key, positions> latest_;
};

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
    /// Something was freed or became evictable, or leases alone hold what transfers held: tells those who wait in front of the
    /// allocator.
    bool changed = false;
    /// Tells the allocator, whose last round failed, that another may succeed, or fails because of leases alone now.
    bool evictable = false;

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

  /// True if a round failed while transfers held something, and nothing became evictable since. Requests must not wait any
  /// longer once leases hold all of it, which the next news say. The tier gets no message of that, so whoever sends the news
  /// asks the ledger.
  bool waits_for_transfers() const { return waits_for_transfers_; }

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
  bool waits_for_transfers_ = false;
  /// Failed rounds, and how many of them were followed by a notice of something evictable.
  uint64_t failed_rounds_ = 0, notices_ = 0;
};

} // namespace terrace
