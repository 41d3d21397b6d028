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
    : from_(std::move(from)), objects_(scope.objects()), numbers_(from_->in->spec, scope, rank),
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

} // namespace terrace
