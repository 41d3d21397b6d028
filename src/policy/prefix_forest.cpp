#include "policy/prefix_forest.hpp"

#include <algorithm>
#include <bit>

namespace terrace {

uint32_t& prefix_forest::reach(entry_index at) {
  if (at >= reached_) {
    words_.reach(at + size_t{1});
    reached_ = (at / words_.page_elements + 1) * words_.page_elements;
  }
  return words_[at];
}

void prefix_forest::set(entry_index at, uint32_t bit, bool on) {
  uint32_t& w = reach(at);
  w = on ? w | bit : w & ~bit;
}

uint32_t prefix_forest::size_class(uint64_t bytes) {
  auto known = [&] { return std::find(sizes_.begin(), sizes_.end(), bytes); };
  auto found = known();
  if (found == sizes_.end()) {
    // The last 320 classes are for sizes rounded to three significant bits, which need at most 63 * 4 + 1.
    if (sizes_.size() > size_mask - 320) {
      int cut = std::max(0, static_cast<int>(std::bit_width(bytes)) - 3);
      bytes = bytes >> cut << cut;
      found = known();
    }
    if (found == sizes_.end())
      found = sizes_.insert(sizes_.end(), bytes);
  }
  return static_cast<uint32_t>(found - sizes_.begin());
}

void prefix_forest::enter(entry_index at, uint64_t bytes) {
  uint32_t& w = reach(at);
  w = (w & ~(size_mask << size_shift)) | resident_bit | size_class(bytes) << size_shift;
  ++residents_;
}

void prefix_forest::leave(entry_index at) {
  reach(at) &= ~(resident_bit | pinned_bit | proposed_bit);
  --residents_;
}

void prefix_forest::set_pinned(entry_index at, bool pinned) { set(at, pinned_bit, pinned); }
void prefix_forest::set_proposed(entry_index at, bool proposed) { set(at, proposed_bit, proposed); }
void prefix_forest::set_listed(entry_index at, bool listed) { set(at, listed_bit, listed); }

void prefix_forest::add_child(entry_index at) {
  uint32_t& w = reach(at);
  if ((w & children_mask) != children_mask)
    w += child;
}

void prefix_forest::drop_child(entry_index at) {
  uint32_t& w = reach(at);
  if ((w & children_mask) != children_mask)
    w -= child;
}

} // namespace terrace
