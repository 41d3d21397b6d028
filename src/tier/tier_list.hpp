// The tiers of a trust group: host memory, through which everything passes, then those that have joined, fastest first.
#pragma once

#include "base/ids.hpp"
#include "base/tier_properties.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace terrace {

/// Any thread may read the list while a tier joins. `Tier` has a `kind`; kinds other than `host` are in the
/// order of speed.
template <class Tier>
class tier_list {
 public:
  /// A returned list never changes.
  const std::vector<Tier>& tiers() const { return *tiers_.load(std::memory_order_acquire); }

  /// Returns null if there is no such tier (yet).
  const Tier* tier(tier_kind kind) const {
    return first_with([kind](const Tier& each) { return each.kind == kind; });
  }
  /// Returns the fastest tier for which `has` is true; null: there is none.
  template <class F>
  const Tier* first_with(F has) const {
    const auto& all = tiers();
    auto found = std::find_if(all.begin(), all.end(), has);
    return found == all.end() ? nullptr : &*found;
  }
  const Tier* disk() const {
    return first_with([](const Tier& each) { return durable(each.kind); });
  }

  /// Adds a tier at its position. One call at a time.
  void join(Tier more) {
    auto all = std::make_unique<std::vector<Tier>>(tiers());
    auto slower = [&more](const Tier& each) {
      return each.kind != memory_tier && (more.kind == memory_tier || each.kind > more.kind);
    };
    all->insert(std::find_if(all->begin(), all->end(), slower), std::move(more));
    tiers_.store(all.get(), std::memory_order_release);
    seen_.push_back(std::move(all));
  }

 private:
  std::vector<std::unique_ptr<const std::vector<Tier>>> seen_; ///< the current list and all previous ones
  const std::vector<Tier> none_{};
  std::atomic<const std::vector<Tier>*> tiers_{&none_};
};

} // namespace terrace
