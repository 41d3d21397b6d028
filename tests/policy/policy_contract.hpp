// The promises of every eviction policy, as one check. The suite runs it over the registry, and a broken
// policy must fail it.
#pragma once

#include "policy/eviction_tracker.hpp"

#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace terrace::test {

/// A forest of residents of two tiers as a map: slow and obvious. It forgets a link when no resident depends
/// on it any more.
struct naive_forest {
  struct place {
    entry_key parent;
    uint64_t bytes[2] = {0, 0};
    bool resident[2] = {false, false};
  };
  std::map<entry_key, place> places;

  bool resident(int tier, entry_key key) const {
    return places.contains(key) && places.at(key).resident[tier];
  }
  void insert(int tier, const entry_info& entry);
  void erase(int tier, entry_key key);
  size_t size(int tier) const;
  /// Returns residents without a resident descendant, after those in `gone` have left.
  std::set<entry_key> leaves(int tier, const std::set<entry_key>& gone = {}) const;
  bool above(entry_key upper, entry_key lower) const; ///< `upper` is on the way from `lower` to its root
};

/// Use it only for names that are known.
inline void use_policy(eviction_tracker& tracker, tier_number tier, std::string_view name) {
  if (auto set = tracker.set_policy(tier, name); !set)
    throw std::invalid_argument(set.error().text);
}

/// A tracker with one policy in tiers 0 and 1. Canaries override what they break.
class policy_subject {
 public:
  explicit policy_subject(std::string_view policy, uint64_t seed = 1) : tracker(seed) {
    for (tier_number tier : {0, 1})
      use_policy(tracker, tier, policy);
  }
  virtual ~policy_subject() = default;

  virtual void insert(tier_number tier, const entry_info& entry, policy_time now) {
    tracker.insert(tier, entry, now);
  }
  virtual void erase(tier_number tier, entry_key key) { tracker.erase(tier, key); }
  virtual void pin(tier_number tier, entry_key key) { tracker.pin(tier, key); }
  virtual std::vector<victim> victims(tier_number tier, uint64_t bytes, policy_time now) {
    return tracker.victims(tier, {bytes}, now);
  }

  eviction_tracker tracker;
};

/// Runs `steps` random events over `keys` entries in two tiers. Returns nullopt if every promise held,
/// otherwise the first broken one.
std::optional<std::string> broken_promise(policy_subject& subject, uint64_t seed, int steps, uint64_t keys);

} // namespace terrace::test
