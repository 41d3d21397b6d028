#include "policy/tracked_tier.hpp"

#include <algorithm>

namespace terrace {

void tracked_tier::give_order(std::unique_ptr<eviction_policy> order, std::string_view policy) {
  order_ = std::move(order);
  policy_ = policy;
  named_.clear();
  std::vector<entry_index> residents;
  for (entry_index at = 0; at < table_.end(); ++at) {
    forest_.set_listed(at, false);
    forest_.set_proposed(at, false);
    if (forest_.resident(at))
      residents.push_back(at);
  }
  std::stable_sort(residents.begin(), residents.end(),
                   [&](entry_index a, entry_index b) { return table_[a].stamp < table_[b].stamp; });
  for (entry_index at : residents)
    order_->on_insert(at);
  for (entry_index at : residents)
    expose(at);
}

void tracked_tier::reconsider_named() {
  for (entry_index at : named_)
    if (forest_.proposed(at)) {
      forest_.set_proposed(at, false);
      expose(at);
    }
  named_.clear();
}

struct tracked_tier::naming {
  uint64_t bytes = 0; ///< wanted
  uint64_t total = 0;
  std::vector<victim> named;
  std::vector<entry_index> bared; ///< lost a child to this call, once for each

  bool enough() const { return total >= bytes; }
};

std::vector<victim> tracked_tier::name_victims(uint64_t bytes, uint32_t& spared, bool strictly) {
  reconsider_named();
  naming names;
  names.bytes = bytes;
  name_more(names, spared);
  if (std::exchange(spared, 0) != 0 && !strictly)
    name_more(names, 0);
  for (entry_index at : names.bared)
    forest_.add_child(at);
  return std::move(names.named);
}

void tracked_tier::name_more(naming& into, uint32_t spared) {
  auto is_spared = [&](entry_index at) { return spared != 0 && table_[at].stamp == spared; };
  std::vector<entry_index> passed;
  while (!into.enough()) {
    entry_index at = order_->pop_victim();
    if (at == no_entry)
      break;
    if (!forest_.may_leave(at) || forest_.proposed(at))
      continue;
    if (is_spared(at)) {
      passed.push_back(at);
      continue;
    }
    while (at != no_entry) {
      entry_index above = name_one(at, into);
      at = no_entry;
      if (above == no_entry || !forest_.may_leave(above))
        continue;
      if (!into.enough() && !is_spared(above) && order_->follows(above))
        at = above;
      else
        order_->add_candidate(above);
    }
  }
  for (entry_index at : passed)
    order_->add_candidate(at);
}

/// The next ancestor that is alive, which may be a leaf now; or none.
entry_index tracked_tier::name_one(entry_index at, naming& into) {
  forest_.set_proposed(at, true);
  named_.push_back(at);
  into.named.push_back({table_[at].key, forest_.bytes_of(at), {}});
  into.total += into.named.back().bytes;
  entry_index above = table_[at].parent;
  for (; above != no_entry; above = table_[above].parent) {
    forest_.drop_child(above);
    into.bared.push_back(above);
    if (forest_.alive(above))
      break;
  }
  if (above != no_entry)
    into.named.back().above = table_[above].key;
  return above;
}

size_t tracked_tier::bytes() const {
  return sizeof *this + forest_.bytes() + order_->bytes() + named_.capacity() * sizeof(entry_index);
}

} // namespace terrace
