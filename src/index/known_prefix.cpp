#include "index/known_prefix.hpp"

#include "base/tier_properties.hpp"

#include <cassert>

namespace terrace {

uint32_t leading_host_chunks(const prefix_plan& plan) {
  auto elsewhere = std::find_if(plan.chunk_tiers.begin(), plan.chunk_tiers.end(),
                                [](tier_kind tier) { return tier != memory_tier; });
  return static_cast<uint32_t>(elsewhere - plan.chunk_tiers.begin());
}

prefix_plan behind_known(prefix_plan rest, uint32_t known, uint32_t chunk_tokens) {
  assert(rest.requested_chunks > 0 && rest.object_tiers.empty());
  uint64_t tokens = uint64_t{known} * chunk_tokens;
  assert(rest.first_token >= tokens);
  rest.requested_chunks += known;
  rest.found_chunks += known;
  rest.usable_chunks = rest.found_chunks; // at least one of their tokens is usable
  rest.first_token -= tokens;
  rest.found_tokens += tokens;
  rest.usable_tokens += tokens;
  if (rest.missing)
    rest.missing->chunk += known;
  rest.chunk_tiers.insert(rest.chunk_tiers.begin(), known, memory_tier);
  return rest;
}

} // namespace terrace
