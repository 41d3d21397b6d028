#include "tier/search/chunk_miss.hpp"

#include "base/printable.hpp"
#include "tier/objects/event_log.hpp"

#include <utility>

namespace terrace {

chunk_examiner::chunk_examiner(space_ptr of, const departure_log& log)
    : space_(std::move(of)), log_(log), layout_(space_->spec) {
  const chunk_need need(space_->spec);
  for (uint32_t object = 0; object < layout_.objects_per_chunk(); ++object)
    if (need.objects(static_cast<uint16_t>(layout_.pool_of(object))) != 0)
      needed_.push_back(object);
}

std::optional<chunk_miss> chunk_examiner::examine(const digest& chunk, const place_of& find) const {
  std::optional<chunk_miss> missed;
  bool some_are_there = false;
  for (uint32_t object : needed_) {
    place found = find(object);
    if (found.readable) {
      some_are_there = true;
      continue;
    }
    chunk_miss miss{.object = object};
    if (found.tier != nowhere) {
      miss.why = miss_reason::out_of_service;
      miss.from = found.tier;
    } else if (auto left = log_.find(to_entry_key(layout_.key(space_->id, chunk, object)))) {
      miss = {left->why, left->from, left->seconds_ago, object};
    }
    bool is_known = miss.why != miss_reason::not_stored;
    bool was_known = missed && missed->why != miss_reason::not_stored;
    if (!missed || (is_known && (!was_known || miss.seconds_ago < missed->seconds_ago)))
      missed = miss;
  }
  if (missed && some_are_there && missed->why == miss_reason::not_stored)
    missed->why = miss_reason::incomplete;
  return missed;
}

std::string chunk_examiner::name_of(uint32_t object) const {
  size_t pool = layout_.pool_of(object);
  std::string name = "pool " + printable(space_->spec.pools[pool].name);
  if (layout_.ranks(pool) == 1)
    return name;
  return "rank " + std::to_string(object - layout_.first_object(pool)) + " of " + name;
}

} // namespace terrace
