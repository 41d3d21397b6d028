// Candidates in bands, each a lazy heap by rank; the base of most policies.
#pragma once

#include "policy/eviction_policy.hpp"

#include <vector>

namespace terrace {

/// Lower bands are evicted first, and lower ranks first within a band. An entry's band and rank may rise at
/// any time without notification: its slot keeps the old values and is corrected when it reaches the top. So
/// an access costs nothing here, and each slot is corrected at most once between two accesses. Eight bytes
/// per candidate. An entry has one slot, marked by `prefix_forest::listed`.
class leaf_bands : public eviction_policy {
 public:
  enum class band_changes { lazy, notified };

  /// `lazy`: a candidate whose band rose stays in its old band until it reaches the top, which is exact for
  /// policies that always take from the lowest band. `notified`: the policy calls `band_changed`.
  leaf_bands(const policy_context& context, size_t bands, band_changes changes = band_changes::lazy)
      : eviction_policy(context), bands_(bands), changes_(changes) {}

  void on_evict(entry_index at) override;
  void add_candidate(entry_index at) override;
  entry_index pop_victim() override;
  bool parent_is_next_victim(entry_index parent) override;
  void on_rebase() override;
  size_t bytes() const override;

 protected:
  virtual size_t band_of(entry_index) const { return 0; }
  virtual uint32_t rank_of(entry_index at) const { return stamp(at); }

  /// The entry moved to another band.
  void band_changed(entry_index at);

  /// The entry's band or rank fell. This needs a call: the entry gets another slot.
  void rank_fell(entry_index at);

  /// Removes and returns the best candidate of a band.
  entry_index pop_from(size_t band);
  /// True if the entry, which is not a candidate, precedes all of its band, judged by the slots.
  bool precedes_band(entry_index at) const;

 private:
  struct slot {
    uint32_t rank = 0;
    entry_index at = no_entry;
  };
  using heap = paged_stack<slot, 512>; // small pages, because some orders have many bands

  static bool before(const slot& a, const slot& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
  }
  void list(entry_index at);
  void push(size_t band, slot entry);
  static void rise(heap& h, size_t i, slot entry);
  static void sink(heap& h, size_t i, slot entry);
  void pop(heap& h);
  /// Corrects the top slot until it is valid. Returns false if the band is empty.
  bool settle(size_t band);
  void sweep();

  size_t slots_ = 0;
  std::vector<heap> bands_;
  band_changes changes_;
};

} // namespace terrace
