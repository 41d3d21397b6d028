#include "group/leased_part.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

scope_numbers::scope_numbers(const space_spec& spec, const transfer_scope& scope, uint16_t rank) {
  chunk_layout layout(spec);
  per_chunk_ = layout.objects_per_chunk();
  first_ = scope.range.first * per_chunk_;
  for (size_t pool : scope.pools)
    in_chunk_.push_back(layout.object_of(pool, rank));
}

leased_part::leased_part(lease_ptr from, const transfer_scope& scope, uint16_t rank)
    : from_(std::move(from)), objects_(scope.objects()), numbers_(from_->space->spec, scope, rank),
      places_(from_->held.size()) {
  for (auto& places : places_)
    places.reserve(objects_);
}

bool leased_part::step() {
  size_t end = std::min(done_ + step_objects, objects_);
  for (size_t tier = 0; tier < places_.size(); ++tier)
    for (size_t i = done_; i < end; ++i)
      places_[tier].push_back(from_->held[tier].held->places()[numbers_.of(i)]);
  done_ = end;
  return done_ == objects_;
}

tier_holds leased_part::take() {
  tier_holds part;
  for (size_t tier = 0; tier < places_.size(); ++tier)
    part.push_back({from_->held[tier].tier, part_of(from_, std::move(places_[tier]))});
  return part;
}

uint64_t tokens_of(const lease& held, size_t count) {
  return tokens_of_chunks(count, held.chunks.size(), held.tail_tokens, held.space->spec.chunk_tokens);
}

lease_ptr lease_on(const lookup_answer& found, const chunk_prefix& prefix, space_ptr space, lease_id id,
                   connection_id owner, std::chrono::steady_clock::time_point now, reference_kind taken_for) {
  auto taken = std::make_shared<lease>();
  taken->id = id;
  taken->owner = owner;
  taken->taken_for = taken_for;
  taken->space = std::move(space);
  taken->chunks.assign(prefix.chunks.begin(), prefix.chunks.begin() + found.plan.found_chunks);
  if (taken->chunks.size() == prefix.chunks.size())
    taken->tail_tokens = prefix.tail_tokens;
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
  outcome.pending_chunks = found.pending_chunks;
  outcome.brought_chunks = found.brought_chunks();
  outcome.plan.object_tiers = {}; // the tiers are no longer needed
  outcome.leased = held != nullptr;
  outcome.held = held;
  return outcome;
}

void count_hits(metrics::space_probe& probe, const space_spec& spec, const lookup_answer& found) {
  const prefix_plan& plan = found.plan;
  uint64_t chunk_tokens = spec.chunk_tokens;
  // tokens that the last chunk lacks
  uint64_t absent = plan.tail_tokens == 0 ? 0 : chunk_tokens - plan.tail_tokens;
  probe.asked(plan.requested_chunks * chunk_tokens - absent);
  auto chunks = chunks_by_tier(plan);
  for (size_t tier = 0; tier < chunks.size(); ++tier)
    if (chunks[tier] != 0) {
      const auto kind = static_cast<tier_kind>(tier);
      bool last = absent != 0 && plan.chunk_tiers.back() == kind;
      uint64_t tokens = chunks[tier] * chunk_tokens - (last ? absent : 0);
      for (size_t from = 0; kind == memory_tier && from < found.brought.size(); ++from)
        if (const uint64_t brought = std::min(tokens, found.brought[from] * chunk_tokens); brought != 0) {
          probe.hit(static_cast<tier_kind>(from), brought);
          tokens -= brought;
        }
      probe.hit(kind, tokens);
    }
}

} // namespace terrace
