// kmg (Kaplan, Meier, Gittins) evicts the leaf with the least expected value of waiting for its next access, learned from all accesses so
// far.
#pragma once

#include "policy/eviction_policy.hpp"

#include <compare>
#include <limits>
#include <tuple>

namespace terrace {

/// Samples 64 leaves and chooses the least recently accessed one, unless another is clearly worth less
/// (access_history::value): then it chooses the one of least value. Values are estimates; where they differ
/// by less than their errors, recency is the better guide, above all among old leaves, whose values are low
/// and alike. It samples because values change with time, each at its own rate; larger samples gain less than
/// 0.3 percentage points of hits (see Psounis and Prabhakar 2002 on small samples). A chain is evicted
/// further from its end as long as it would be chosen before the rest of the sample.
class kmg_policy : public eviction_policy {
 public:
  explicit kmg_policy(const policy_context& context) : eviction_policy(context), random_(context.seed) {}

  void on_evict(entry_index at) override { context_.forest.set_listed(at, false); }
  void add_candidate(entry_index at) override;
  entry_index pop_victim() override;
  bool parent_is_next_victim(entry_index parent) override;
  size_t beating_victim(std::span<const entry_index> candidates) override;
  bool keeps_ghosts() const override { return true; }
  bool learns() const override { return true; }
  size_t bytes() const override { return leaves_.bytes(); }

 private:
  static constexpr size_t draws = 64;
  static constexpr float close = 1.1F; ///< values within this factor decide nothing
  struct worth {
    float value;
    uint32_t stamp;
    entry_index at; ///< among equals the entry known first is chosen, as under lru
    friend auto operator<=>(const worth&, const worth&) = default;
  };
  static constexpr worth highest{std::numeric_limits<float>::infinity(), ~0U, no_entry};
  static bool older(const worth& a, const worth& b) {
    return std::tie(a.stamp, a.at) < std::tie(b.stamp, b.at);
  }
  /// The extremes among some leaves.
  struct extremes {
    worth least = highest, oldest = highest;
    void add(const worth& w);
    const worth& victim() const { return oldest.value <= least.value * close ? oldest : least; }
  };
  worth worth_of(entry_index at) const;
  void remove(size_t place);
  void sweep();

  /// Pinned and spared leaves stay in the set, so that the sample does not depend on when a pin ends. If most
  /// leaves are pinned, pinned ones are dropped until they become candidates again.
  static constexpr size_t crowded = 4 * draws, tries_max = 16 * draws;
  static constexpr size_t fetched = 32;                          ///< draws whose entries are fetched together
  static constexpr uint64_t random_step = 0x9e3779b97f4a7c15ULL; // splitmix64
  size_t place_at(uint64_t random) const;
  void fetch_next() const;
  struct drawing;
  /// True if the leaf at `place` is evictable. `place` may hold another leaf, or none, afterwards.
  bool consider(size_t place, bool drop_held, drawing& so_far);
  /// Samples; returns the place of the next victim, or the size if none is evictable. Sets `rest_`.
  size_t draw();
  paged_stack<entry_index> leaves_; ///< leaves and former leaves; `listed` marks the entries in here
  uint64_t random_;
  extremes rest_; ///< the extremes of the last sample, without the victim
};

} // namespace terrace
