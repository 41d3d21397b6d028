// Decides which part of a found prefix a client should read, and which part it has sooner if it computes it again.
//
//   recompute_choice choice(planner, spec, {.tokens_per_s = 20'000, .tiers = ...});
//   while (choice.step()) ...; // others have their turn
//   choice.chunks()            // the prefix to be offered
//
// It chooses the prefix for which reading it and computing the rest take least time together. Tiers are read in
// parallel; a read waits for the bytes that its tier has to read already, and for the first byte. Only prefixes at which
// the rules of all pools hold are offered.
//
// A tier whose speed is not known, or was measured long ago, is tried: a prefix is offered although computing may be
// faster, and it is so short that the client loses little in that case. How long that takes is not known, so such a
// trial is estimated to take as long as the client computes one chunk. Whoever reads it ends after twice the estimate
// (`patience_s`) with what is there by then: a trial costs the time of two chunks, however slow the tier is.
#pragma once

#include "base/steps.hpp"
#include "base/tier_properties.hpp"
#include "index/prefix_plan.hpp"
#include "tier/search/read_meter.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace terrace {

/// The facts on which the choice depends, at one moment.
struct recompute_terms {
  double tokens_per_s = 0; ///< the speed at which the client computes; above 0
  std::array<std::optional<read_state>, tier_kinds>
      tiers{}; ///< by tier_kind; none: reading the tier takes no time
};

/// Pure; used by one thread at a time.
class recompute_choice {
 public:
  /// The arguments must outlive this object. The plan of `of` is made.
  recompute_choice(const prefix_planner& planner, const space_spec& spec, const recompute_terms& terms);
  recompute_choice(const recompute_choice&) = delete;
  recompute_choice& operator=(const recompute_choice&) = delete;

  /// A trial reads at most this many bytes, or the shortest prefix that reads anything. A tier that was not measured gets
  /// no further trial while it is late with one.
  static constexpr uint64_t trial_bytes = 16 << 20;
  /// A trial of a measured tier takes at most this share of the time since the tier was last read, by that
  /// measure: so trials cost at most 2 %, and are rarer the slower the tier is.
  static constexpr double trial_share = 0.02;
  /// After this time a trial is made, estimated as that of a tier that was not measured.
  static constexpr double trial_after_s = 3600;
  /// A read has fallen behind once it takes this many times its estimate, and at least so long: threads of a busy machine
  /// are late by that.
  static constexpr double patience_factor = 2, patience_min_s = 0.01;

  /// The number of objects that a step looks at, about 100 us.
  static constexpr size_t step_objects = 16'384;

  /// Does a step. Returns true if there is another one.
  bool step() { return work_.next(); }
  /// Call after the last step. Returns how many of the found chunks to offer.
  uint32_t chunks() const { return chunks_; }
  /// The same: how long to wait for what of it has to be read. The client computes sooner what has not come by then.
  double patience_s() const { return std::max(patience_factor * estimate_s_, patience_min_s); }

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
  std::array<uint64_t, tier_kinds> bytes_{}; ///< by tier: what a prefix of the current length reads there
  std::array<uint32_t, tier_kinds>
      first_{};                   ///< by tier: the shortest prefix that reads anything there; 0: none yet
  uint32_t best_ = 0, trial_ = 0; ///< the prefix that takes least time, and the one that is a trial
  double best_s_ = 0;
  double best_read_s_ = 0, trial_read_s_ = 0; ///< of these, estimated
  uint32_t chunks_ = 0;
  double estimate_s_ = 0; ///< of reading them
  steps work_;            ///< declared last, because it refers to the others
};

} // namespace terrace
