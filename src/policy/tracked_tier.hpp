// One tier of an eviction_tracker: its residents, its policy, and the victims chosen by the last call.
#pragma once

#include "base/eviction_types.hpp"
#include "policy/eviction_policy.hpp"
#include "policy/prefix_forest.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace terrace {

/// The tracker updates the forest and calls `add_if_evictable` for entries that may have become candidates. A
/// chosen victim stays resident but is not a candidate until the next call, when all chosen ones that are
/// still resident become candidates again.
class tracked_tier {
 public:
  /// The table must outlive the tier.
  explicit tracked_tier(entry_table& table) : table_(table) {}

  /// Sets the policy. Residents stay; the new policy receives them from the least recently accessed on.
  void set_policy(std::unique_ptr<eviction_policy> policy, std::string_view name);
  eviction_policy& policy() const { return *policy_; }
  std::string_view policy_name() const { return name_; }

  prefix_forest& forest() { return forest_; }
  const prefix_forest& forest() const { return forest_; }

  /// Adds the entry as a candidate if it is evictable.
  void add_if_evictable(entry_index at) {
    if (forest_.may_leave(at))
      policy_->add_candidate(at);
  }

  /// Makes the victims of the last call eligible again.
  void reset_chosen();

  /// Chooses entries, best victims first, until they add up to `bytes` or none is left. Entries with the
  /// stamp `spared` (0: none) are chosen only if nothing else is left, or, if `strictly`, never. The policy
  /// reads `spared` as well.
  std::vector<victim> choose_victims(uint64_t bytes, uint32_t& spared, bool strictly);

  size_t bytes() const;

 private:
  struct selection;
  void choose_more(selection& into, uint32_t spared);
  entry_index choose(entry_index at, selection& into);

  entry_table& table_;
  prefix_forest forest_;
  std::unique_ptr<eviction_policy> policy_;
  std::string_view name_;
  std::vector<entry_index> chosen_; ///< victims of the last call
};

} // namespace terrace
