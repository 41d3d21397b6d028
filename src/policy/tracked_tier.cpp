#include "policy/tracked_tier.hpp"

#include <algorithm>

namespace terrace {

void tracked_tier::set_policy(std::unique_ptr<eviction_policy> policy, std::string_view name) {
  policy_ = std::move(policy);
  name_ = name;
  chosen_.clear();
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
    policy_->on_insert(at);
  for (entry_index at : residents)
    add_if_evictable(at);
}

void tracked_tier::reset_chosen() {
  for (entry_index at : chosen_)
    if (forest_.proposed(at)) {
      forest_.set_proposed(at, false);
      add_if_evictable(at);
    }
  chosen_.clear();
}

struct tracked_tier::selection {
  uint64_t bytes = 0; ///< the bytes to be freed
  uint64_t total = 0;
  std::vector<victim> chosen;
  std::vector<entry_index> stripped; ///< parents that lost a child in this call, once per child

  bool enough() const { return total >= bytes; }
};

std::vector<victim> tracked_tier::choose_victims(uint64_t bytes, uint32_t& spared, bool strictly) {
  reset_chosen();
  selection result;
  result.bytes = bytes;
  choose_more(result, spared);
  if (std::exchange(spared, 0) != 0 && !strictly)
    choose_more(result, 0);
  for (entry_index at : result.stripped)
    forest_.add_child(at);
  return std::move(result.chosen);
}

void tracked_tier::choose_more(selection& into, uint32_t spared) {
  auto is_spared = [&](entry_index at) { return spared != 0 && table_[at].stamp == spared; };
  std::vector<entry_index> skipped;
  while (!into.enough()) {
    entry_index at = policy_->pop_victim();
    if (at == no_entry)
      break;
    if (!forest_.may_leave(at) || forest_.proposed(at))
      continue;
    if (is_spared(at)) {
      skipped.push_back(at);
      continue;
    }
    while (at != no_entry) {
      entry_index above = choose(at, into);
      at = no_entry;
      if (above == no_entry || !forest_.may_leave(above))
        continue;
      if (!into.enough() && !is_spared(above) && policy_->parent_is_next_victim(above))
        at = above;
      else
        policy_->add_candidate(above);
    }
  }
  for (entry_index at : skipped)
    policy_->add_candidate(at);
}

/// Returns the next ancestor that is alive and may now be a leaf, or none.
entry_index tracked_tier::choose(entry_index at, selection& into) {
  forest_.set_proposed(at, true);
  chosen_.push_back(at);
  into.chosen.push_back({table_[at].key, forest_.bytes_of(at), {}});
  into.total += into.chosen.back().bytes;
  entry_index above = table_[at].parent;
  for (; above != no_entry; above = table_[above].parent) {
    forest_.drop_child(above);
    into.stripped.push_back(above);
    if (forest_.alive(above))
      break;
  }
  if (above != no_entry)
    into.chosen.back().above = table_[above].key;
  return above;
}

size_t tracked_tier::bytes() const {
  return sizeof *this + forest_.bytes() + policy_->bytes() + chosen_.capacity() * sizeof(entry_index);
}

} // namespace terrace
