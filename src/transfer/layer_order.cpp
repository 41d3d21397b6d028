#include "transfer/layer_order.hpp"

#include "transfer/load_course.hpp"

#include <utility>

namespace terrace {

load_subject in_layer_order(const load_subject& of, size_t first_pool, size_t chunks) {
  load_subject made = of;
  size_t all = of.objects->size() / of.objects_per_chunk;
  made.order = {chunks, of.objects_per_chunk, first_pool};
  made.objects_per_chunk = 1;
  size_t count = chunks * (of.objects_per_chunk - first_pool);
  auto batch = std::make_shared<object_batch>();
  batch->trailing = of.objects->trailing;
  batch->keys.reserve(count);
  batch->parents.reserve(count);
  batch->payload_bytes.reserve(count);
  for (size_t place = 0; place < count; ++place) {
    size_t number = made.order.number_of(place);
    batch->keys.push_back(of.objects->keys[number]);
    batch->parents.push_back(of.objects->parents[number]);
    batch->payload_bytes.push_back(of.objects->payload_bytes[number]);
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
