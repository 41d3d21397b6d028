#include "policy/arc_policy.hpp"

#include <algorithm>

namespace terrace {

void arc_policy::set_list(entry_index at, list to) {
  --sizes_[list_of(at)];
  ++sizes_[to];
  marks_.set_bits(at, to);
}

void arc_policy::on_insert(entry_index at) {
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

void arc_policy::on_hit(entry_index at, uint32_t) {
  if (list_of(at) == t2)
    return;
  set_list(at, t2);
  band_changed(at);
}

void arc_policy::on_evict(entry_index at) {
  leaf_bands::on_evict(at);
  bool once = list_of(at) == t1;
  set_list(at, once ? b1 : b2);
  (once ? old_once_ : old_often_)
      .push(at | static_cast<uint32_t>(marks_.stay(at)) << arrival_queue::stay_shift);
  size_t capacity = context_.forest.residents() + 1;
  limit(old_once_, b1, capacity - std::min(capacity, sizes_[t1]));
  limit(old_often_, b2, 2 * capacity - std::min(2 * capacity, sizes_[t1] + sizes_[t2] + sizes_[b1]));
}

void arc_policy::limit(ghosts& queue, list of, size_t most) {
  while (!queue.empty() && (sizes_[of] > most || queue.size() > 2 * most + 1024)) {
    uint32_t oldest = queue.front();
    queue.pop();
    entry_index at = arrival_queue::entry_of(oldest);
    if (list_of(at) == of && marks_.stay(at) == oldest >> arrival_queue::stay_shift)
      set_list(at, nowhere);
  }
}

entry_index arc_policy::pop_victim() {
  size_t first = first_band();
  entry_index at = pop_from(first);
  return at != no_entry ? at : pop_from(1 - first);
}

bool arc_policy::parent_is_next_victim(entry_index parent) {
  // A chosen victim still counts in the sizes until it is evicted, so the band is still the one it came from.
  return band_of(parent) == first_band() && precedes_band(parent);
}

size_t arc_policy::bytes() const {
  return leaf_bands::bytes() + marks_.bytes() + old_once_.bytes() + old_often_.bytes();
}

} // namespace terrace
