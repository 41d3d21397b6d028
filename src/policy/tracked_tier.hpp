// One tier of an eviction_tracker: who is resident, in which order they leave, and who was named for it.
#pragma once

#include "policy/eviction_policy.hpp"
#include "policy/eviction_types.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace terrace {

/// The tracker keeps the forest, and tells here who may have become a candidate. Names victims for it: a named entry stays where it
/// is, out of the order's candidates, until the next call, when those that are still there are candidates again.
class tracked_tier {
 public:
  /// The table must outlive it.
  explicit tracked_tier(entry_table& table) : table_(table) {}

  /// The residents, if there are any, stay, and the new order learns them from the least recently used on.
  void give_order(std::unique_ptr<eviction_policy> order, std::string_view policy);
  eviction_policy& order() const { return *order_; }
  std::string_view policy() const { return policy_; }

  prefix_forest& forest() { return forest_; }
  const prefix_forest& forest() const { return forest_; }

  /// The entry is a candidate, if it may leave.
  void expose(entry_index at) {
    if (forest_.may_leave(at))
      order_->add_candidate(at);
  }

  /// Those that the last call named may be named again.
  void reconsider_named();

  /// Names entries, best victims first, until they add up to `bytes` or no more may leave. Entries with the stamp `spared`
  /// (0: none) go only when nothing else may, or, if `strictly`, not at all. The order reads `spared` as well.
  std::vector<victim> name_victims(uint64_t bytes, uint32_t& spared, bool strictly);

  size_t bytes() const;

 private:
  struct naming;
  void name_more(naming& into, uint32_t spared);
  entry_index name_one(entry_index at, naming& into);

  entry_table& table_;
  prefix_forest forest_;
  std::unique_ptr<eviction_policy> order_;
  std::string_view policy_;
  std::vector<entry_index> named_; ///< by the last call
};

} // namespace terrace
