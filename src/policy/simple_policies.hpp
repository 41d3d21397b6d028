// The policies of one rule: by how recently an entry was used (slru, lru2, mru, lru), by a number of each entry (lfu, priority), and by
// order of arrival (sieve, fifo).
#pragma once

#include "policy/arrival_queue.hpp"
#include "policy/entry_table.hpp"
#include "policy/leaf_bands.hpp"

#include <array>

namespace terrace {

// ---- by how recently an entry was used ----

// Segmented LRU (Karedla, Love, Wherry 1994).

/// Arrivals are on probation; the first access protects. At most half of the residents are protected: beyond
/// that, the least recently used protected leaf returns to probation. Unlike in the paper it returns in the
/// order of its last access, not as the youngest. A protected share of four fifths, often used elsewhere,
/// fills the tier with chunks that were accessed twice long ago: on chats it costs 6 to 8 percentage points
/// of hits when the tier holds 5 to 10 % of the working set.
class slru_policy : public leaf_bands {
 public:
  explicit slru_policy(const policy_context& context) : leaf_bands(context, 2, band_changes::notified) {}

  void on_insert(entry_index at) override { protected_.set(at, 0); }
  void on_hit(entry_index at, uint32_t) override {
    if (protected_.get(at) == 0) {
      protected_.set(at, 1);
      ++count_;
      band_changed(at);
    }
    while (count_ * 2 > context_.forest.residents()) {
      entry_index oldest = pop_from(1);
      if (oldest == no_entry)
        return;
      protected_.set(oldest, 0);
      --count_;
      add_candidate(oldest);
    }
  }
  void on_evict(entry_index at) override {
    leaf_bands::on_evict(at);
    count_ -= protected_.get(at);
    protected_.set(at, 0);
  }
  size_t bytes() const override { return leaf_bands::bytes() + protected_.bytes(); }

 protected:
  size_t band_of(entry_index at) const override { return protected_.get(at); }

 private:
  entry_marks<uint8_t> protected_;
  size_t count_ = 0;
};

// Least recently used by the second-last access: LRU-K with K = 2 (O'Neil, O'Neil, Weikum 1993).

/// Entries accessed once are evicted first, in order of that access; then the entry whose second-last access
/// is the oldest. Accesses are remembered after eviction, as long as the tracker keeps the ghost. The policy
/// is good when a tier holds a few percent of the working set, and weak when it holds much of it.
///
/// Two bytes per entry hold the time between its last two accesses, to 11 bits.
class lru2_policy : public leaf_bands {
 public:
  explicit lru2_policy(const policy_context& context) : leaf_bands(context, 2) {}

  void on_hit(entry_index at, uint32_t before) override { note(at, before); }
  void on_ghost_hit(entry_index at, uint32_t before) override { note(at, before); }
  void on_forget(entry_index at) override { gaps_.set(at, 0); }
  bool keeps_ghosts() const override { return true; }
  size_t bytes() const override { return leaf_bands::bytes() + gaps_.bytes(); }

 protected:
  size_t band_of(entry_index at) const override { return gaps_.get(at) != 0; }
  uint32_t rank_of(entry_index at) const override {
    uint32_t gap = decode(gaps_.get(at)), last = stamp(at);
    return last > gap ? last - gap : 0;
  }

 private:
  /// 5 bits of exponent, 11 bits of mantissa.
  static uint16_t encode(uint32_t gap) {
    uint32_t shift = 0;
    while (gap >> shift > 2047)
      ++shift;
    return static_cast<uint16_t>(shift << 11 | gap >> shift);
  }
  static uint32_t decode(uint16_t code) { return (code & 2047U) << (code >> 11); }

  void note(entry_index at, uint32_t before) {
    if (before == 0)
      return;
    uint32_t gap = stamp(at) - before;
    gaps_.set(at, encode(gap == 0 ? 1 : gap));
  }

  entry_marks<uint16_t> gaps_;
};

// Most recently used.

/// Suits loops over more than fits, and serves as a baseline. It does not suit chats or agents: it evicts the
/// sessions that are about to continue.
class mru_policy : public leaf_bands {
 public:
  explicit mru_policy(const policy_context& context) : leaf_bands(context, 1) {}

  void on_hit(entry_index at, uint32_t) override { rank_fell(at); }

 protected:
  uint32_t rank_of(entry_index at) const override { return ~stamp(at); }
};

/// The rank is the stamp of the last access, in any tier. Close to the best policy once a tier holds a fifth
/// of the working set.
class lru_policy : public leaf_bands {
 public:
  explicit lru_policy(const policy_context& context) : leaf_bands(context, 1) {}
};

// ---- by a number of each entry: the count of its accesses, or the retention that its request asked for ----

// Least frequently used.

/// Counts the accesses during one stay: an arrival counts 1, and the count starts over after a return. Among
/// equals the entry that reached the count first is evicted first. Counts stop at 255. It does not suit
/// changing workloads: entries that were popular once never leave.
class lfu_policy : public leaf_bands {
 public:
  explicit lfu_policy(const policy_context& context) : leaf_bands(context, count_max) {}

  void on_insert(entry_index at) override { uses_.set(at, 1); }
  void on_hit(entry_index at, uint32_t) override {
    if (uint8_t uses = uses_.get(at); uses < count_max)
      uses_.set(at, static_cast<uint8_t>(uses + 1));
  }
  size_t bytes() const override { return leaf_bands::bytes() + uses_.bytes(); }

 protected:
  size_t band_of(entry_index at) const override { return uses_.get(at) - size_t{1}; }

 private:
  static constexpr uint8_t count_max = 255;
  entry_marks<uint8_t> uses_;
};

/// An entry has the priority of the request that accessed it last.
class priority_policy : public leaf_bands {
 public:
  explicit priority_policy(const policy_context& context) : leaf_bands(context, priorities) {}

  void on_insert(entry_index at) override { priority_.set(at, context_.retention); }
  void on_hit(entry_index at, uint32_t) override {
    uint8_t before = priority_.get(at);
    priority_.set(at, context_.retention);
    if (context_.retention < before)
      rank_fell(at);
  }
  size_t bytes() const override { return leaf_bands::bytes() + priority_.bytes(); }

 protected:
  size_t band_of(entry_index at) const override { return priority_.get(at); }

 private:
  static constexpr size_t priorities = 8;
  entry_marks<uint8_t> priority_;
};

// ---- by order of arrival ----

// SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi 2024).

/// One queue in order of arrival, and a hand that moves from the oldest to the youngest entry and starts
/// over. An entry accessed since the hand passed loses its mark and keeps its place; the first entry without
/// a mark is evicted. The entries ahead of and behind the hand are two queues here, which swap when the hand
/// starts over. On chats that is rare: entries accessed again stay while there are others, so the hit ratios
/// equal those of `lfu`.
class sieve_policy : public eviction_policy {
 public:
  explicit sieve_policy(const policy_context& context)
      : eviction_policy(context), queues_{arrival_queue(context, marks_), arrival_queue(context, marks_)} {}

  void on_insert(entry_index at) override {
    marks_.arrive(at);
    queues_[ahead_].push(at);
  }
  void on_hit(entry_index at, uint32_t) override { marks_.set_bits(at, 1); }
  void on_evict(entry_index at) override { marks_.set_queued(at, false); }
  void add_candidate(entry_index at) override { queues_[ahead_].add_candidate(at); }
  entry_index pop_victim() override {
    for (int rounds = 0; rounds < 3; ++rounds, ahead_ = 1 - ahead_)
      for (entry_index at; (at = queues_[ahead_].pop_victim()) != no_entry;) {
        if (marks_.bits(at) == 0) {
          if (queues_[ahead_].empty())
            ahead_ = 1 - ahead_; // before the next arrival, which is the last of the new round
          return at;
        }
        marks_.set_bits(at, 0);
        queues_[1 - ahead_].push(at);
      }
    return no_entry;
  }
  size_t bytes() const override { return marks_.bytes() + queues_[0].bytes() + queues_[1].bytes(); }

 private:
  arrival_marks marks_; ///< the bits: accessed since the hand passed
  std::array<arrival_queue, 2> queues_;
  size_t ahead_ = 0;
};

/// Suits streams without reuse, and serves as a baseline. It does not suit chats or agents: a frequently used
/// prefix is evicted as early as any other once its last suffix is gone.
class fifo_policy : public eviction_policy {
 public:
  explicit fifo_policy(const policy_context& context) : eviction_policy(context), queue_(context, marks_) {}

  void on_insert(entry_index at) override { marks_.arrive(at), queue_.push(at); }
  void on_evict(entry_index at) override { marks_.set_queued(at, false); }
  void add_candidate(entry_index at) override { queue_.add_candidate(at); }
  entry_index pop_victim() override { return queue_.pop_victim(); }
  bool parent_is_next_victim(entry_index parent) override { return !marks_.queued(parent); }
  size_t bytes() const override { return marks_.bytes() + queue_.bytes(); }

 private:
  arrival_marks marks_;
  arrival_queue queue_;
};

} // namespace terrace
