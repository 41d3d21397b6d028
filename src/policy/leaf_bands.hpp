// Candidates in bands, each a lazy heap by rank: what most orders are made of.
#pragma once

#include "policy/eviction_policy.hpp"

#include <vector>

namespace terrace {

/// Lower bands go first, and in a band lower ranks. An entry's band and rank may rise at any time without a word: its
/// slot holds the old ones, and is put right when it comes to the top. So a use costs nothing here, and each slot is put
/// right at most once between two uses. Eight bytes a candidate. An entry has one slot, which `prefix_forest::listed` says.
class leaf_bands : public eviction_policy {
 public:
  enum class band_changes { found, told };

  /// `found`: a candidate whose band has risen is found where it was. Exact for orders that always take from the lowest
  /// band. Others tell with `moved`.
  leaf_bands(const policy_context& context, size_t bands, band_changes changes = band_changes::found)
      : eviction_policy(context), bands_(bands), changes_(changes) {}

  void on_evict(entry_index at) override;
  void add_candidate(entry_index at) override;
  entry_index pop_victim() override;
  bool follows(entry_index parent) override;
  void on_rebase() override;
  size_t bytes() const override;

 protected:
  virtual size_t band_of(entry_index) const { return 0; }
  virtual uint32_t rank_of(entry_index at) const { return stamp(at); }

  /// The entry's band is another one.
  void moved(entry_index at);

  /// The entry's band or rank sank, which needs saying: it gets another slot.
  void sank(entry_index at);

  bool band_empty(size_t band) const { return bands_[band].empty(); }
  /// The best candidate of a band.
  entry_index pick_from(size_t band);
  /// Whether an entry that is no candidate comes before all of its band, by what the slots say.
  bool leads_band(entry_index at) const;

 private:
  struct slot {
    uint32_t rank = 0;
    entry_index at = no_entry;
  };
  using heap = paged_stack<slot, 512>; // small pages: some orders have many bands

  static bool before(const slot& a, const slot& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
  }
  void list(entry_index at);
  void push(size_t band, slot entry);
  static void rise(heap& h, size_t i, slot entry);
  static void sink(heap& h, size_t i, slot entry);
  void pop(heap& h);
  /// Puts the top right until it is true. False: the band is empty.
  bool settle(size_t band);
  void sweep();

  size_t slots_ = 0;
  std::vector<heap> bands_;
  band_changes changes_;
};

} // namespace terrace
