#include "policy/leaf_tree.hpp"

#include <cassert>
#include <queue>

namespace terrace {

std::optional<leaf_tree::index> leaf_tree::find(entry_key key) const {
  auto found = by_key_.find(key);
  if (found == by_key_.end() || !nodes_[found->second].resident)
    return std::nullopt;
  return found->second;
}

leaf_tree::index leaf_tree::find_or_make(entry_key key) {
  auto [found, added] = by_key_.try_emplace(key, none);
  if (added) {
    if (spare_.empty()) {
      found->second = static_cast<index>(nodes_.size());
      nodes_.emplace_back();
    } else {
      found->second = spare_.back();
      spare_.pop_back();
    }
    nodes_[found->second] = {.key = key};
  }
  return found->second;
}

bool leaf_tree::insert(const entry_info& entry, eviction_rank rank) {
  index at = find_or_make(entry.key);
  if (nodes_[at].resident)
    return false;
  nodes_[at].resident = true;
  nodes_[at].bytes = entry.bytes;
  nodes_[at].rank = rank;
  ++residents_;
  if (nodes_[at].parent == none && !entry.parent.empty())
    link(at, entry.parent);
  if (is_leaf(nodes_[at]))
    leaves_.insert({rank, at});
  return true;
}

void leaf_tree::link(index child, entry_key parent) {
  if (parent == nodes_[child].key)
    return;
  index above = find_or_make(parent);
  if (nodes_[child].children > 0)
    for (index i = above; i != none; i = nodes_[i].parent)
      if (i == child)
        return; // `above` is below `child` already, so it was not made just now
  if (is_leaf(nodes_[above]))
    leaves_.erase({nodes_[above].rank, above});
  ++nodes_[above].children;
  nodes_[child].parent = above;
}

bool leaf_tree::set_rank(entry_key key, eviction_rank rank) {
  auto at = find(key);
  if (!at)
    return false;
  node& n = nodes_[*at];
  if (is_leaf(n) && n.rank != rank) {
    auto place = leaves_.extract({n.rank, *at});
    assert(!place.empty());
    place.value().rank = rank;
    leaves_.insert(leaves_.end(), std::move(place)); // most policies move an entry to the end
  }
  n.rank = rank;
  return true;
}

std::optional<eviction_rank> leaf_tree::rank_of(entry_key key) const {
  auto at = find(key);
  if (!at)
    return std::nullopt;
  return nodes_[*at].rank;
}

bool leaf_tree::erase(entry_key key) {
  auto at = find(key);
  if (!at)
    return false;
  if (is_leaf(nodes_[*at]))
    leaves_.erase({nodes_[*at].rank, *at});
  nodes_[*at].resident = false;
  --residents_;
  settle(*at);
  return true;
}

void leaf_tree::settle(index at) {
  while (at != none && nodes_[at].children == 0) {
    if (nodes_[at].resident) {
      leaves_.insert({nodes_[at].rank, at});
      return;
    }
    index above = nodes_[at].parent;
    by_key_.erase(nodes_[at].key);
    spare_.push_back(at);
    if (above != none)
      --nodes_[above].children;
    at = above;
  }
}

std::vector<victim> leaf_tree::victims(uint64_t bytes, const evictable_filter& may_leave) const {
  std::vector<victim> named;
  std::unordered_map<index, uint32_t> gone;                           // children that are named, by parent
  std::priority_queue<leaf, std::vector<leaf>, std::greater<>> bared; // parents without children left
  uint64_t total = 0;
  auto next = leaves_.begin();
  while (total < bytes && (next != leaves_.end() || !bared.empty())) {
    leaf best;
    if (bared.empty() || (next != leaves_.end() && *next < bared.top())) {
      best = *next++;
    } else {
      best = bared.top();
      bared.pop();
    }
    const node& n = nodes_[best.at];
    if (!may_leave(n.key))
      continue;
    named.push_back({n.key, n.bytes});
    total += n.bytes;
    index above = n.parent;
    while (above != none && ++gone[above] == nodes_[above].children) {
      if (nodes_[above].resident) {
        bared.push({nodes_[above].rank, above});
        break;
      }
      above = nodes_[above].parent;
    }
  }
  return named;
}

size_t leaf_tree::bytes_per_entry() {
  constexpr size_t hash_node = sizeof(std::pair<const entry_key, index>) + sizeof(void*);
  constexpr size_t bucket = sizeof(void*);
  constexpr size_t leaf_node = sizeof(leaf) + 4 * sizeof(void*);
  return sizeof(node) + hash_node + bucket + leaf_node;
}

} // namespace terrace
