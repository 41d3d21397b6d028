// Passes the ages of accesses to the tiers' probes.
#pragma once

#include "metrics/tier_probe.hpp"
#include "policy/eviction_tracker.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <utility>

namespace terrace {

/// Used by the policy's thread only.
class age_probes final : public age_observer {
 public:
  /// Null: the tier's ages are not counted.
  void set(tier_number tier, std::shared_ptr<metrics::tier_probe> probe) {
    probes_.at(tier) = std::move(probe);
  }
  void reused(tier_number tier, std::chrono::milliseconds after) override {
    if (auto& probe = probes_[tier])
      probe->reused(after);
  }
  void evicted(tier_number tier, std::chrono::milliseconds age) override {
    if (auto& probe = probes_[tier])
      probe->unused_until_evicted(age);
  }

 private:
  std::array<std::shared_ptr<metrics::tier_probe>, tiers_max> probes_;
};

} // namespace terrace
