// The policies by how recently an entry was used: slru, lru2, mru and lru.
#pragma once

#include "policy/entry_table.hpp"
#include "policy/leaf_bands.hpp"

namespace terrace {

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

} // namespace terrace
