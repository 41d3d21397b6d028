// Adaptive replacement cache (Megiddo, Modha 2003).
#pragma once

#include "policy/arrival_queue.hpp"
#include "policy/leaf_bands.hpp"

namespace terrace {

/// T1 holds residents accessed once, T2 those accessed more often, each ordered by least recent access; B1 and B2 hold
/// the ghosts of each. A return from B1 grows the target size of T1, a return from B2 shrinks it. It needs no setting
/// and is the best of the policies without a learned model. The paper's capacity c is the number of residents.
class arc_policy : public leaf_bands {
 public:
  explicit arc_policy(const policy_context& context) : leaf_bands(context, 2, band_changes::notified) {}

  void on_insert(entry_index at) override;
  void on_hit(entry_index at, uint32_t before) override;
  void on_evict(entry_index at) override;
  void on_forget(entry_index at) override { set_list(at, nowhere); }
  entry_index pop_victim() override;
  bool parent_is_next_victim(entry_index parent) override;
  bool keeps_ghosts() const override { return true; }
  size_t bytes() const override;

 protected:
  size_t band_of(entry_index at) const override { return list_of(at) == t2; }

 private:
  enum list : uint8_t { nowhere, t1, t2, b1, b2 };
  using ghosts = paged_queue<uint32_t>;

  list list_of(entry_index at) const { return static_cast<list>(marks_.bits(at)); }
  void set_list(entry_index at, list to);
  void limit(ghosts& queue, list of, size_t most);
  size_t first_band() const { return static_cast<double>(sizes_[t1]) > target_ ? 0 : 1; }

  arrival_marks marks_; ///< the bits hold the list
  size_t sizes_[5] = {};
  ghosts old_once_, old_often_;
  double target_ = 0; ///< target size of T1: p in the paper
};

} // namespace terrace
