// The leaf that is least worth the wait for its next use, as learned from all uses so far.
#pragma once

#include "policy/eviction_policy.hpp"

#include <compare>

namespace terrace {

/// Draws 64 leaves and takes the one of least value (access_history::value), the least recently used of equals. Sampling
/// because values change with the time, each at its own pace; more draws gain less than 0.3 points of hits (Psounis and
/// Prabhakar 2002 on how few draws do). A chain goes on being eaten from its end while it is worth less than the
/// rest of the draw.
class kmg_policy : public eviction_policy {
 public:
  explicit kmg_policy(const policy_context& context) : eviction_policy(context), random_(context.seed) {}

  void on_evict(entry_index at) override { context_.forest.set_listed(at, false); }
  void add_candidate(entry_index at) override;
  entry_index pop_victim() override;
  bool follows(entry_index parent) override;
  size_t beating_victim(std::span<const entry_index> candidates) override;
  bool keeps_ghosts() const override { return true; }
  bool learns() const override { return true; }
  size_t bytes() const override { return leaves_.bytes(); }

 private:
  static constexpr size_t draws = 64;
  struct worth {
    float value;
    uint32_t stamp;
    entry_index at; ///< of equals the one that was known first goes, as under lru
    friend auto operator<=>(const worth&, const worth&) = default;
  };
  worth worth_of(entry_index at) const;
  void remove(size_t place);
  void sweep();

  /// Held and spared leaves stay where they are, so that what is drawn does not depend on when a hold ends. When most are
  /// held, those go until they are exposed again.
  static constexpr size_t crowded = 4 * draws, tries_max = 16 * draws;
  struct drawing;
  /// Whether the leaf at `place` may leave. `place` may have another leaf, or none, afterwards.
  bool consider(size_t place, bool drop_held, drawing& so_far);
  /// Draws; the place of the least, or the size when no leaf may leave. Sets `second_`.
  size_t draw();
  paged_stack<entry_index> leaves_; ///< and what were leaves; `listed` says who is here
  uint64_t random_;
  worth second_{};
};

} // namespace terrace
