#include "tier/search/recompute_choice.hpp"

#include "index/object_header.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

recompute_choice::recompute_choice(const prefix_planner& planner, const space_spec& spec,
                                   const recompute_terms& terms)
    : planner_(planner), plan_(planner.plan()), spec_(spec), terms_(terms), layout_(spec), work_(choose()) {
  assert(terms.tokens_per_s > 0);
}

steps recompute_choice::choose() {
  step_pace pace(step_objects);
  best_s_ = static_cast<double>(plan_.found_tokens) / terms_.tokens_per_s;
  for (uint32_t length = 1; length <= plan_.found_chunks; ++length) {
    add_chunk(length - 1);
    if (planner_.rules_hold(length))
      consider(length);
    if (pace.due(layout_.objects_per_chunk()) && length != plan_.found_chunks)
      co_yield {};
  }
  chunks_ = std::max(best_, trial_);
  estimate_s_ = best_ >= trial_ ? best_read_s_ : trial_read_s_;
}

/// A prefix with one chunk more reads that chunk. In pools with windows, it does not read the chunk that the
/// window no longer has.
void recompute_choice::add_chunk(uint32_t chunk) {
  for (size_t pool = 0; pool < layout_.pools(); ++pool) {
    count(pool, chunk, true);
    const pool_spec& of = spec_.pools[pool];
    if (of.rule == hit_rule::trailing_chunks && chunk >= of.trailing)
      count(pool, chunk - of.trailing, false);
  }
}

void recompute_choice::count(size_t pool, uint32_t chunk, bool more) {
  uint64_t bytes = physical_bytes_for(spec_.pools[pool].object_bytes);
  size_t object = size_t{chunk} * layout_.objects_per_chunk() + layout_.first_object(pool);
  for (uint32_t rank = 0; rank < layout_.ranks(pool); ++rank, ++object) {
    auto tier = static_cast<size_t>(plan_.object_tiers[object]);
    if (tier < bytes_.size())
      bytes_[tier] += more ? bytes : -bytes;
  }
}

void recompute_choice::consider(uint32_t length) {
  const double chunk_s = spec_.chunk_tokens / terms_.tokens_per_s;
  double read_s = 0, estimate_s = 0, trial_s = 0;
  // `known`: the speed of every tier is known, or little is read from it. `trial`: the read from every tier is
  // within a trial.
  bool known = true, trial = true;
  for (size_t tier = 0; tier < bytes_.size(); ++tier) {
    const auto& state = terms_.tiers[tier];
    if (!state || bytes_[tier] == 0)
      continue;
    if (first_[tier] == 0)
      first_[tier] = length;
    const bool little = state->queued_bytes + bytes_[tier] <= trial_bytes ||
                        (state->queued_bytes == 0 && first_[tier] == length);
    if (state->bytes_per_s <= 0) {
      const bool is_late = state->waits_s > chunk_s; // it has its trial
      known = known && little && !is_late;
      trial = trial && little && !is_late;
      estimate_s = std::max(estimate_s, chunk_s);
      trial_s = std::max(trial_s, chunk_s);
      continue;
    }
    const double this_s = state->read_s(bytes_[tier]);
    const bool is_paid = this_s <= state->idle_s * trial_share, is_old = state->idle_s >= trial_after_s;
    read_s = std::max(read_s, this_s);
    estimate_s = std::max(estimate_s, this_s);
    trial_s = std::max(trial_s, is_paid ? this_s : chunk_s);
    trial = trial && little && (is_paid || is_old);
  }
  const double compute_s = static_cast<double>(plan_.found_chunks - length) * chunk_s;
  if (known && read_s + compute_s <= best_s_) {
    best_ = length;
    best_s_ = read_s + compute_s;
    best_read_s_ = estimate_s;
  }
  if (trial) {
    trial_ = length;
    trial_read_s_ = trial_s;
  }
}

} // namespace terrace
