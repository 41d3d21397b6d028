#include "connection/leased_part.hpp"

#include "index/chunk_layout.hpp"

namespace terrace {

tier_holds leased_part(const lease_ptr& from, const transfer_scope& scope, uint16_t rank) {
  chunk_layout layout(from->in->spec);
  tier_holds part;
  for (const tier_hold& one : from->held) {
    std::vector<object_place> places;
    places.reserve(scope.objects());
    for (size_t c = scope.range.first; c < scope.range.first + scope.range.count; ++c)
      for (size_t pool : scope.pools)
        places.push_back(one.held->places()[c * layout.objects_per_chunk() + layout.object_of(pool, rank)]);
    part.push_back({one.tier, hold_ptr(new object_hold(release_sink_ptr{}, std::move(places)),
                                       [from](object_hold* view) { delete view; })});
  }
  return part;
}

} // namespace terrace
