// Residents in order of arrival, for policies that move nothing on a hit.
#pragma once

#include "policy/eviction_policy.hpp"

#include <cstddef>
#include <deque>
#include <memory>

namespace terrace {

// A queue in pages.

/// First in, first out; at most two pages of slack.
template <class T>
class paged_queue {
 public:
  static constexpr size_t page_elements = 1024;

  void push(const T& value) {
    size_t place = head_ + size_++;
    if (place / page_elements == pages_.size())
      pages_.push_back(std::make_unique<T[]>(page_elements));
    pages_[place / page_elements][place % page_elements] = value;
  }
  const T& front() const { return pages_.front()[head_]; }
  void pop() {
    --size_;
    if (++head_ == page_elements) {
      pages_.pop_front();
      head_ = 0;
    }
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t bytes() const { return pages_.size() * (page_elements * sizeof(T) + sizeof(pages_[0])); }

 private:
  std::deque<std::unique_ptr<T[]>> pages_;
  size_t head_ = 0; ///< position in the first page
  size_t size_ = 0;
};

/// One byte for each entry of a tier: a count of its arrivals modulo 16, whether it is in a queue, and three
/// bits for the policy. The count distinguishes slots of an earlier stay from those of the present one.
class arrival_marks {
 public:
  /// Starts a new stay: increments the count, sets queued, clears the policy's bits. Returns the count.
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

/// First in, first out, for leaves and inner entries alike. An entry that reaches the head while it cannot be evicted
/// (it has children or is pinned) becomes *overdue*: it leaves the queue, and once it is a candidate again it is chosen
/// before all queued entries. So each entry is examined once, however many are pinned. Four bytes per entry.
class arrival_queue {
 public:
  /// The position of the count in a slot. The bits below hold the entry, so a tier has at most 2^28 entries.
  static constexpr int stay_shift = 28;
  static entry_index entry_of(uint32_t slot) { return slot & ((1U << stay_shift) - 1); }

  arrival_queue(const policy_context& context, arrival_marks& marks) : context_(context), marks_(marks) {}

  /// Appends the entry.
  void push(entry_index at);

  /// Marks the entry as overdue. Does nothing if it is queued, here or in another queue with the same marks.
  void add_candidate(entry_index at);

  /// Removes and returns the next evictable entry: overdue entries first, then queued ones.
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
