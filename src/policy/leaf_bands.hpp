// Candidates in bands, each a lazy heap by rank: what most orders are made of.
#pragma once

#include "policy/eviction_order.hpp"

#include <vector>

namespace terrace {

/// Lower bands go first, and in a band lower ranks. An entry's band and rank may rise at any time without a word: its
/// slot holds the old ones, and is put right when it comes to the top. So a use costs nothing here, and each slot is put
/// right at most once between two uses. Eight bytes a candidate. An entry has one slot, which `tier_forest::listed` says.
class leaf_bands : public eviction_order {
 public:
  leaf_bands(const order_context& context, size_t bands) : eviction_order(context), bands_(bands) {}

  void left(entry_index at) override;
  void exposed(entry_index at) override;
  entry_index pick() override;
  bool follows(entry_index parent) override;
  void rebased() override;
  size_t bytes() const override;

 protected:
  virtual size_t band_of(entry_index) const { return 0; }
  virtual uint32_t rank_of(entry_index at) const { return stamp(at); }

  /// The entry's band sank, which needs saying: it gets another slot, and the one in the higher band is dropped when met.
  void sank(entry_index at) { push(band_of(at), {rank_of(at), at}); }

  bool band_empty(size_t band) const { return bands_[band].empty(); }
  /// The best candidate of a band.
  entry_index pick_from(size_t band);

 private:
  struct slot {
    uint32_t rank = 0;
    entry_index at = no_entry;
  };
  using heap = paged_stack<slot>;

  static bool before(const slot& a, const slot& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
  }
  void push(size_t band, slot entry);
  static void rise(heap& h, size_t i, slot entry);
  static void sink(heap& h, size_t i, slot entry);
  void pop(heap& h);
  /// Puts the top right until it is true. False: the band is empty.
  bool settle(size_t band);
  void sweep();

  size_t slots_ = 0;
  std::vector<heap> bands_;
};

} // namespace terrace
