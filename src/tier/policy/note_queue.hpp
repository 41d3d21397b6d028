// The notes of a tier for its policy, with a bound on those in flight: if a policy falls behind, notes are
// merged instead of growing its mailbox.
#pragma once

#include "base/tier_properties.hpp"
#include "tier/policy/policy_notes.hpp"

#include <cassert>
#include <unordered_map>

namespace terrace {

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

  void keep(const policy_note& note, uint64_t inference);
  void replace(size_t& position);
  void compact();

  size_t since_mark_ = 0;
  size_t marks_ = 0; ///< outstanding marks
  tier_kind tier_ = nowhere;
  std::vector<kept_note> kept_;
  size_t dead_ = 0;
  std::unordered_map<entry_key, positions> latest_;
};

} // namespace terrace
