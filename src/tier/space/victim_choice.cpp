#include "tier/space/victim_choice.hpp"

#include <unordered_map>

namespace terrace {

std::vector<entry_key> with_descendants(const victim_answer& named, const std::vector<size_t>& chosen) {
  std::vector<bool> leaves(named.victims.size());
  for (size_t i : chosen)
    leaves[i] = true;
  std::unordered_map<entry_key, size_t> index;
  for (size_t i = named.victims.size(); i-- > 0;) { // an ancestor is proposed after its descendants
    if (i < named.above.size() && !named.above[i].empty())
      if (auto above = index.find(named.above[i]); above != index.end() && leaves[above->second])
        leaves[i] = true;
    index.emplace(named.victims[i], i);
  }
  std::vector<entry_key> all;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i])
      all.push_back(named.victims[i]);
  return all;
}

} // namespace terrace
