// What a tier has to tell its policy, and how much of it may be under way: a policy that falls behind finds its news
// merged instead of a mailbox that grows.
#pragma once

#include "tier/policy_notes.hpp"

#include <unordered_map>

namespace terrace {

/// The tier sends batches of notes freely, and behind every so many of them a mark, which the policy gives back when it
/// comes to it. With `marks_max` marks under way the tier sends nothing more: notes are kept here, in their order, until a
/// mark is back or until the tier needs victims (a question must come behind all that happened before it, and there is
/// one question at a time, whose answer is as good as a mark).
///
/// Of what is kept, a later use of an object takes the place of an earlier one, and a later hold or release that of an
/// earlier one: the policy counts such uses as one. Nothing is merged across the object's arrival or end. So at most two
/// notes are kept for each object of the tier, besides arrivals and ends, of which there are no more than fit the arena
/// before victims are needed.
///
/// Belongs to one tier actor.
class note_line {
 public:
  static constexpr size_t batches_between_marks = 32;
  static constexpr size_t marks_max = 2;

  /// True: `batch` may be sent, and is counted as sent. False: its notes are kept, and it is empty.
  bool admits(policy_notes& batch);

  /// After each batch: whether a mark must follow it now. Counts it as sent.
  bool mark_due();

  /// A mark is back: what was kept may be sent.
  void marked() { --marks_; }

  /// All that was kept, in order, as few batches; counts as one batch. Empty: nothing was kept.
  std::vector<policy_notes> take();

  size_t kept() const { return kept_.size() - dead_; }

 private:
  struct kept_note {
    policy_note note;
    uint64_t inference = 0;
    bool dead = false; ///< a later one took its place
  };
  struct positions { ///< in `kept_`, plus one; 0: none
    size_t use = 0;
    size_t hold = 0;
  };

  void keep(const policy_note& note, uint64_t inference);
  void replace(size_t& position);
  void compact();

  size_t since_mark_ = 0;
  size_t marks_ = 0; ///< under way
  tier_kind tier_ = tier_kind::none;
  std::vector<kept_note> kept_;
  size_t dead_ = 0;
  std::unordered_map<entry_key, positions> latest_;
};

} // namespace terrace
