#include "transfer/load_plan.hpp"

#include "base/tier_properties.hpp"
#include "index/object_header.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

namespace terrace {

bool load_subject::leased_below() const {
  return std::any_of(leased.begin(), leased.end(),
                     [](const tier_hold& one) { return one.tier != memory_tier; });
}

bool load_subject::by_pool() const {
  hold_ptr host = held_in(leased, memory_tier);
  if (!is_awaited() || !host || host->places().size() != objects->size() ||
      objects->size() > by_pool_objects_max)
    return false;
  return std::all_of(host->places().begin(), host->places().end(), std::mem_fn(&object_place::present));
}

bool load_subject::by_layer() const {
  // A load that may end early must have whole chunks of what came in time.
  const bool from_below = held_by ? leased_below() : from_store && read_by == read_limit::max();
  return is_awaited() && from_below && objects->size() <= by_pool_objects_max;
}

size_t load_plan::end_of_window(size_t first, uint64_t bytes_max) const {
  size_t end = window_end(subject.objects->payload_bytes, first, subject.objects_per_chunk,
                          whole() ? UINT64_MAX : bytes_max >> std::min(fruitless, 63U), physical_bytes_for);
  return subject.order ? std::min(end, subject.order.end_of_pool(first)) : end;
}

transfer_window load_plan::window_from(size_t first, uint64_t bytes_max) const {
  size_t end = end_of_window(first, bytes_max);
  return {first, end, slice(subject.objects, first, end)};
}

bool load_plan::leased_in_host(const transfer_window& window) const {
  hold_ptr held = held_in(subject.leased, memory_tier);
  if (!held || held->places().size() < window.end)
    return false;
  auto first = held->places().begin();
  return std::all_of(first + static_cast<ptrdiff_t>(window.begin), first + static_cast<ptrdiff_t>(window.end),
                     std::mem_fn(&object_place::present));
}

uint64_t load_plan::device_window_bytes(uint64_t most) const {
  return !subject.arrivals && of_lease() && leased_in_host(next_window(UINT64_MAX)) ? UINT64_MAX : most;
}

bool load_plan::passes() {
  uint64_t size = memory.size();
  uint64_t room = size - std::min(size, others_hold);
  if (!subject.copies() || promoted < room / 2)
    return false;
  if (chain_bytes == 0)
    for (uint64_t each : subject.objects->payload_bytes)
      chain_bytes += physical_bytes_for(each);
  return chain_bytes > room;
}

error load_plan::no_room(uint64_t bytes) const {
  std::string own;
  if (subject.account)
    own = " (those of this connection " + std::to_string(subject.account->bytes()) + ")";
  return {errc::no_space,
          "leases and their readers hold " + std::to_string(others_hold) + own + " of " +
              std::to_string(memory.size()) + " bytes of host memory, and " + std::to_string(bytes) +
              " more would leave no room for other clients: load into a region, or release leases"};
}

load_subject in_layer_order(const load_subject& subject, size_t first_pool, size_t chunks) {
  load_subject made = subject;
  size_t all = subject.objects->size() / subject.objects_per_chunk;
  made.order = {chunks, subject.objects_per_chunk, first_pool};
  made.objects_per_chunk = 1;
  size_t count = chunks * (subject.objects_per_chunk - first_pool);
  auto batch = std::make_shared<object_batch>();
  batch->trailing = subject.objects->trailing;
  batch->keys.reserve(count);
  batch->parents.reserve(count);
  batch->payload_bytes.reserve(count);
  for (size_t place = 0; place < count; ++place) {
    size_t number = made.order.number_of(place);
    batch->keys.push_back(subject.objects->keys[number]);
    batch->parents.push_back(subject.objects->parents[number]);
    batch->payload_bytes.push_back(subject.objects->payload_bytes[number]);
  }
  made.objects = std::move(batch);
  for (tier_hold& one : made.leased) {
    std::vector<object_place> places(count);
    for (size_t place = 0; place < count; ++place)
      if (size_t number = made.order.number_of(place); number < one.held->places().size())
        places[place] = one.held->places()[number];
    one.held = part_of(one.held, std::move(places));
  }
  if (chunks != all)
    made.generations = {};
  return made;
}

} // namespace terrace
