// Residents in the order in which they came, for orders that move nothing at a use.
#pragma once

#include "policy/eviction_policy.hpp"
#include "policy/paged_queue.hpp"

namespace terrace {

/// A byte for each entry of a tier: a count of its arrivals modulo 16, whether a queue has it, and three bits for the
/// order. The count tells a slot of an earlier stay from that of the present one.
class arrival_marks {
 public:
  /// A new stay: counted, queued, the order's bits 0. Gives the count.
  uint8_t arrive(entry_index at);
  uint8_t stay(entry_index at) const { return get(at) & stay_mask; }
  bool queued(entry_index at) const { return get(at) & queued_bit; }
  void set_queued(entry_index at, bool queued);
  uint8_t bits(entry_index at) const { return get(at) >> bits_shift; }
  void set_bits(entry_index at, uint8_t bits);
  size_t bytes() const { return column_.bytes(); }

 private:
  static constexpr uint8_t stay_mask = 15, queued_bit = 16;
  static constexpr int bits_shift = 5;
  uint8_t get(entry_index at) const { return at < reached_ ? column_[at] : 0; }
  uint8_t& reach(entry_index at);

  paged_column<uint8_t> column_;
  size_t reached_ = 0;
};

/// Entries first come first, leaves and others. One that is met at the head and may not leave (it has children, or it is
/// held) is *overdue*: it leaves the queue, and when it is exposed it goes before all that are queued. So each is met
/// once, however many are held. Four bytes an entry.
class arrival_queue {
 public:
  static constexpr int stay_shift =
      28; ///< of a slot; below it is the entry, so a tier has at most 2^28 of them
  static entry_index entry_of(uint32_t slot) { return slot & ((1U << stay_shift) - 1); }

  arrival_queue(const policy_context& context, arrival_marks& marks) : context_(context), marks_(marks) {}

  /// At the end.
  void push(entry_index at);

  /// Nothing for one that is queued, here or in another queue of the same marks.
  void add_candidate(entry_index at);

  /// The next one that may leave: the overdue, then the queued. Takes it out.
  entry_index pop_victim();

  bool empty() const { return queue_.empty() && overdue_.empty(); }
  size_t bytes() const { return queue_.bytes() + overdue_.bytes(); }

 private:
  uint32_t slot_of(entry_index at) const { return at | static_cast<uint32_t>(marks_.stay(at)) << stay_shift; }
  bool present(uint32_t slot) const;
  void sweep();

  policy_context context_;
  arrival_marks& marks_;
  paged_queue<uint32_t> queue_;
  paged_stack<uint32_t> overdue_;
};

} // namespace terrace
