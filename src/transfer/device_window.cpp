#include "transfer/device_window.hpp"

#include "index/object_header.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

hold_ptr device_window::leased() const {
  hold_ptr held = held_in(course_.of.leased, tier_kind::gpu);
  if (!held || held->places().size() < part_.end)
    return nullptr;
  return part_of(held, part_.begin, part_.end);
}

bool device_window::take_held(hold_ptr held) {
  held_ = std::move(held);
  if (!held_)
    return false;
  const auto& places = held_->places();
  while (usable_ < places.size() && places[usable_].present())
    ++usable_;
  usable_ -= usable_ % course_.of.objects_per_chunk;
  return usable_ != 0;
}

confirm_request device_window::confirmation() const {
  confirm_request request;
  for (size_t i = 0; i < usable_; ++i)
    request.ids.push_back(held_->places()[i].id);
  return request;
}

bool device_window::take_confirmed(const std::vector<bool>& present) {
  const size_t wanted = usable_;
  usable_ = static_cast<size_t>(std::find(present.begin(), present.end(), false) - present.begin());
  usable_ -= usable_ % course_.of.objects_per_chunk;
  return usable_ == wanted;
}

device_load_request device_window::request() const {
  const load_subject& of = course_.of;
  device_load_request request;
  copy_request& copy = request.copy;
  copy.direction = copy_direction::out_of_arena;
  copy.outside = of.target;
  copy.runs = of.runs;
  copy.context = of.context;
  copy.owners = {held_};
  size_t first = of.order ? of.order.pool_of(part_.begin) : 0;
  copy.arrived = {of.arrivals, first, of.objects_per_chunk,
                  static_cast<uint32_t>(usable_ / of.objects_per_chunk)};
  size_t end = of.order ? of.order.end_of_pool(part_.begin) : of.objects->size();
  if (part_.begin + usable_ == end && of.generations.page)
    copy.generations = of.generations.part(first, of.objects_per_chunk);
  for (size_t i = 0; i < usable_; ++i) {
    const object_place& place = held_->places()[i];
    copy.objects.push_back(
        {nullptr, of.order.number_of(part_.begin + i), place.offset + object_header_bytes});
    request.ids.push_back(place.id);
  }
  return request;
}

uint64_t device_window::deliver() {
  load_result& done = course_.done;
  uint64_t bytes = 0;
  for (size_t i = 0; i < usable_; ++i)
    bytes += part_.objects->payload_bytes[i];
  done.bytes += bytes;
  done.bytes_by_tier[static_cast<size_t>(tier_kind::gpu)] += bytes;
  done.chunks += usable_ / course_.of.objects_per_chunk;
  course_.begin += usable_;
  return bytes;
}

} // namespace terrace
