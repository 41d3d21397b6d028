#include "connection/found_lease.hpp"

#include <utility>

namespace terrace {

lease_ptr lease_on(const lookup_answer& found, const chunk_prefix& prefix, space_ptr in, lease_id id,
                   connection_id owner, std::chrono::steady_clock::time_point now) {
  auto taken = std::make_shared<lease>();
  taken->id = id;
  taken->owner = owner;
  taken->in = std::move(in);
  taken->chunks.assign(prefix.chunks.begin(), prefix.chunks.begin() + found.plan.found_chunks);
  taken->before = prefix.parent;
  taken->first_token = prefix.first_token;
  taken->held = found.held;
  taken->bytes = found.held_bytes;
  taken->taken = now;
  return taken;
}

lookup_outcome outcome_of(const lookup_answer& found, const space_spec& spec, const lease_ptr& held) {
  lookup_outcome outcome;
  outcome.chunk_tokens = spec.chunk_tokens;
  outcome.plan = found.plan;
  outcome.recompute_chunks = found.recompute_chunks;
  outcome.plan.object_tiers = {}; // no longer needed
  outcome.leased = held != nullptr;
  outcome.held = held;
  return outcome;
}

void count_hits(metrics::space_probe& probe, const space_spec& spec, const prefix_plan& plan) {
  uint64_t chunk_tokens = spec.chunk_tokens;
  probe.asked(plan.requested_chunks * chunk_tokens);
  auto chunks = chunks_by_tier(plan);
  for (size_t tier = 0; tier < chunks.size(); ++tier)
    if (chunks[tier] != 0)
      probe.hit(static_cast<tier_kind>(tier), chunks[tier] * chunk_tokens);
}

} // namespace terrace
