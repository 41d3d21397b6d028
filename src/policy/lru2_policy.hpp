// Least recently used by the second-last access: LRU-K with K = 2 (O'Neil, O'Neil, Weikum 1993).
#pragma once

#include "policy/entry_marks.hpp"
#include "policy/leaf_bands.hpp"

namespace terrace {

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

} // namespace terrace
