// Which part of a found prefix a client should read, and which it has sooner if it computes it again.
//
//   recompute_choice choice(planner, spec, {.tokens_per_s = 20'000, .tiers = ...});
//   while (choice.step()) ...; // others have their turn
//   choice.chunks()            // the prefix to be offered
//
// It takes the prefix for which reading it plus computing the rest takes least. Tiers are read in parallel; a read waits
// for what its tier has to read already. Only prefixes at which the rules of all pools hold are offered.
//
// A tier whose speed is not known, or was measured long ago, is tried: a prefix is offered although computing may be
// faster, of so little that the client loses little if it is.
#pragma once

#include "base/steps.hpp"
#include "index/prefix_plan.hpp"
#include "tier/search/read_meter.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace terrace {

/// What the choice depends on, at one moment.
struct recompute_terms {
  double tokens_per_s = 0;                          ///< the speed at which the client computes; above 0
  std::array<std::optional<read_state>, 4> tiers{}; ///< by tier_kind; none: reading it takes no time
};

/// Pure; used by one thread at a time.
class recompute_choice {
 public:
  /// All outlive it. `of`: its plan is made.
  recompute_choice(const prefix_planner& of, const space_spec& spec, const recompute_terms& terms);
  recompute_choice(const recompute_choice&) = delete;
  recompute_choice& operator=(const recompute_choice&) = delete;

  /// A trial reads at most so much, or the shortest prefix that reads anything.
  static constexpr uint64_t trial_bytes = 16 << 20;
  /// A trial of a tier that was measured takes at most this share of the time since it was last read, by that measure:
  /// so trials cost at most 2 %, and are rarer the slower the tier is.
  static constexpr double trial_share = 0.02;
  /// After so long a trial is made whatever it takes.
  static constexpr double trial_after_s = 3600;

  /// Objects that are looked at in a step, about 100 us.
  static constexpr size_t step_objects = 16'384;

  /// A step; true: there is another one.
  bool step() { return work_.next(); }
  /// After the last step: how many of the found chunks to offer.
  uint32_t chunks() const { return chunks_; }

 private:
  steps choose();
  void add_chunk(uint32_t chunk);
  void count(size_t pool, uint32_t chunk, bool more);
  void consider(uint32_t length);

  const prefix_planner& planner_;
  const prefix_plan& plan_;
  const space_spec& spec_;
  const recompute_terms& terms_;
  chunk_layout layout_;
  std::array<uint64_t, 4> bytes_{}; ///< by tier: what a prefix of the current length reads there
  std::array<uint32_t, 4> first_{}; ///< by tier: the shortest prefix that reads anything there; 0: none yet
  uint32_t best_ = 0, trial_ = 0;   ///< prefixes: that takes least, and that is a trial
  double best_s_ = 0;
  uint32_t chunks_ = 0;
  steps work_; ///< last: it refers to the others
};

} // namespace terrace
