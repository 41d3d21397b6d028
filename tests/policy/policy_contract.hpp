// What every eviction policy promises, as one check that the suite runs over the registry and a broken one must fail.
#pragma once

#include "policy/eviction_policy.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace terrace::testing {

/// A forest of residents as a map: slow, obvious. It forgets a link when nothing resident hangs on it any more.
struct naive_forest {
  struct place {
    entry_key parent;
    uint64_t bytes = 0;
    bool resident = false;
  };
  std::map<entry_key, place> places;

  bool resident(entry_key key) const { return places.contains(key) && places.at(key).resident; }
  bool insert(const entry_info& entry);
  void erase(entry_key key);
  size_t size() const;
  /// Residents without a resident descendant, when those in `gone` have left.
  std::set<entry_key> leaves(const std::set<entry_key>& gone = {}) const;
  bool above(entry_key upper, entry_key lower) const; ///< `upper` is on the way from `lower` to its root
};

/// Runs `steps` random events over `keys` entries. Nothing when every promise held, otherwise the first broken one.
std::optional<std::string> broken_promise(eviction_policy& policy, uint64_t seed, int steps, uint64_t keys);

} // namespace terrace::testing
