// Adaptive replacement cache (Megiddo, Modha 2003).
#pragma once

#include "policy/arrival_queue.hpp"
#include "policy/leaf_bands.hpp"

#include <algorithm>

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

inline void arc_policy::set_list(entry_index at, list to) {
  --sizes_[list_of(at)];
  ++sizes_[to];
  marks_.set_bits(at, to);
}

inline void arc_policy::on_insert(entry_index at) {
  auto capacity = static_cast<double>(context_.forest.residents());
  list from = list_of(at);
  auto ratio = [&](list more, list less) {
    return std::max(1.0, static_cast<double>(sizes_[more]) /
                             static_cast<double>(std::max<size_t>(1, sizes_[less])));
  };
  if (from == b1)
    target_ = std::min(capacity, target_ + ratio(b2, b1));
  else if (from == b2)
    target_ = std::max(0.0, target_ - ratio(b1, b2));
  set_list(at, nowhere);
  marks_.arrive(at); // slots of an earlier stay in the ghost queues become invalid
  set_list(at, from == b1 || from == b2 ? t2 : t1);
}

inline void arc_policy::on_hit(entry_index at, uint32_t) {
  if (list_of(at) == t2)
    return;
  set_list(at, t2);
  band_changed(at);
}

inline void arc_policy::on_evict(entry_index at) {
  leaf_bands::on_evict(at);
  bool once = list_of(at) == t1;
  set_list(at, once ? b1 : b2);
  (once ? old_once_ : old_often_)
      .push(at | static_cast<uint32_t>(marks_.stay(at)) << arrival_queue::stay_shift);
  size_t capacity = context_.forest.residents() + 1;
  limit(old_once_, b1, capacity - std::min(capacity, sizes_[t1]));
  limit(old_often_, b2, 2 * capacity - std::min(2 * capacity, sizes_[t1] + sizes_[t2] + sizes_[b1]));
}

inline void arc_policy::limit(ghosts& queue, list of, size_t most) {
  while (!queue.empty() && (sizes_[of] > most || queue.size() > 2 * most + 1024)) {
    uint32_t oldest = queue.front();
    queue.pop();
    entry_index at = arrival_queue::entry_of(oldest);
    if (list_of(at) == of && marks_.stay(at) == oldest >> arrival_queue::stay_shift)
      set_list(at, nowhere);
  }
}

inline entry_index arc_policy::pop_victim() {
  size_t first = first_band();
  entry_index at = pop_from(first);
  return at != no_entry ? at : pop_from(1 - first);
}

inline bool arc_policy::parent_is_next_victim(entry_index parent) {
  // A chosen victim still counts in the sizes until it is evicted, so the band is still the one it came from.
  return band_of(parent) == first_band() && precedes_band(parent);
}

inline size_t arc_policy::bytes() const {
  return leaf_bands::bytes() + marks_.bytes() + old_once_.bytes() + old_often_.bytes();
}

} // namespace terrace
