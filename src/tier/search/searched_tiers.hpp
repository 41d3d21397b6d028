// The tiers that a lookup searches, in the order of the group's list (tier_list.hpp).
#pragma once

#include "base/ids.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace terrace {

/// Tiers that are empty or unreadable are not searched. `Tier` is an entry of a tier_list, with `kind`, `index`,
/// `reads()` and `degraded()`. This refers to the list, which must outlive it. Used by one thread at a time.
template <class Tier>
class searched_tiers {
 public:
  static constexpr size_t kinds_max = 4; ///< a group has at most one tier of each kind

  /// Bit n of `wanted`: tier_kind n may be searched; 0: all.
  searched_tiers(const std::vector<Tier>& all, uint32_t wanted) {
    for (const Tier& tier : all) {
      bool allowed = wanted == 0 || (wanted >> static_cast<unsigned>(tier.kind) & 1) != 0;
      if (allowed && tier.reads() && !tier.index->empty())
        add(tier);
    }
  }

  size_t size() const { return size_; }
  const Tier& operator[](size_t i) const { return *searched_[i]; }

  std::span<const tier_kind> kinds() const { return std::span(kinds_).first(size_); }

  /// Returns false if a tier of `all`, the tiers that exist now, may have objects that the search could not find.
  bool everything(const std::vector<Tier>& all) const {
    return std::all_of(all.begin(), all.end(), [this](const Tier& tier) {
      bool was = std::ranges::find(kinds(), tier.kind) != kinds().end();
      return (was || tier.index->empty()) && tier.degraded().empty();
    });
  }

 private:
  void add(const Tier& tier) {
    assert(size_ < kinds_max);
    searched_[size_] = &tier;
    kinds_[size_++] = tier.kind;
  }

  std::array<const Tier*, kinds_max> searched_{};
  std::array<tier_kind, kinds_max> kinds_{};
  size_t size_ = 0;
};

} // namespace terrace
