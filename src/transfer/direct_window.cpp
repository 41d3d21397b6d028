#include "transfer/direct_window.hpp"

#include "index/object_header.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace terrace {

namespace {

/// XXH3 computes the checksum of shorter payloads in another way than the device does.
constexpr uint64_t verified_bytes_min = 241;

} // namespace

size_t direct_window::before_known(size_t most, const recent_keys& read) const {
  size_t first = 0;
  while (first < most && !read.has(load_.subject.objects->keys[part_.begin + first]))
    first += load_.subject.objects_per_chunk;
  return std::min(first, most);
}

size_t direct_window::before_present(size_t most, const tier_index& tier) const {
  return most == 0
             ? 0
             : tier.first_present(*load_.subject.objects, part_.begin, part_.begin + most) - part_.begin;
}

size_t direct_window::readable(size_t most, uint64_t bytes_max) const {
  auto payloads = std::span(load_.subject.objects->payload_bytes).subspan(part_.begin, most);
  auto end = std::find_if(payloads.begin(), payloads.end(), [bytes_max](uint64_t bytes) {
    return bytes < verified_bytes_min || physical_bytes_for(bytes) > bytes_max;
  });
  return static_cast<size_t>(end - payloads.begin());
}

bool direct_window::cut(size_t objects) {
  objects -= objects % load_.subject.objects_per_chunk;
  if (objects == 0)
    return false;
  part_.end = part_.begin + objects;
  part_.objects = slice(load_.subject.objects, part_.begin, part_.end);
  return true;
}

hold_ptr direct_window::leased() const {
  hold_ptr held = held_in(load_.subject.leased, tier_kind::disk);
  return held && held->places().size() >= part_.end ? part_of(held, part_.begin, part_.end) : nullptr;
}

bool direct_window::add_held(hold_ptr held) {
  held_ = std::move(held);
  if (!held_)
    return false;
  const auto& places = held_->places();
  auto gap =
      std::find_if(places.begin(), places.end(), [](const object_place& one) { return !one.present(); });
  usable_ = static_cast<size_t>(gap - places.begin());
  usable_ -= usable_ % load_.subject.objects_per_chunk;
  return usable_ != 0;
}

direct_load direct_window::request(const space_ptr& space) const {
  const load_subject& subject = load_.subject;
  direct_load request;
  request.space = space;
  copy_request& copy = request.copy;
  copy.direction = copy_direction::out_of_arena;
  copy.outside = subject.target;
  copy.runs = subject.runs;
  copy.context = subject.context;
  copy.owners = {held_};
  for (size_t i = 0; i < usable_; ++i) {
    copy.objects.push_back({nullptr, part_.begin + i});
    request.keys.push_back(part_.objects->keys[i]);
    request.places.push_back(held_->places()[i]);
  }
  return request;
}

bool direct_window::add_read(size_t objects) {
  const size_t wanted = usable_;
  usable_ = std::min(objects - objects % load_.subject.objects_per_chunk, wanted);
  return usable_ == wanted;
}

confirm_request direct_window::confirmation() const {
  confirm_request request;
  for (size_t i = 0; i < usable_; ++i)
    request.ids.push_back(held_->places()[i].id);
  return request;
}

bool direct_window::add_confirmed(const std::vector<bool>& present) {
  auto gone = std::find(present.begin(), present.end(), false);
  return add_read(static_cast<size_t>(gone - present.begin()));
}

std::optional<copy_request> direct_window::announcement() const {
  const load_subject& subject = load_.subject;
  const bool last = part_.begin + usable_ == subject.objects->size() && subject.generations.page;
  if (usable_ == 0 || (!last && !subject.arrivals))
    return std::nullopt;
  copy_request copy;
  copy.direction = copy_direction::out_of_arena;
  copy.outside = subject.target;
  copy.runs = subject.runs;
  copy.context = subject.context;
  copy.arrived = {subject.arrivals, 0, subject.objects_per_chunk,
                  static_cast<uint32_t>(usable_ / subject.objects_per_chunk)};
  if (last)
    copy.generations = subject.generations.part(0, subject.objects_per_chunk);
  return copy;
}

uint64_t direct_window::deliver(recent_keys& read) {
  load_result& done = load_.done;
  uint64_t bytes = 0;
  for (size_t i = 0; i < usable_; ++i)
    bytes += part_.objects->payload_bytes[i];
  for (size_t i = 0; i < usable_; i += load_.subject.objects_per_chunk)
    read.add(part_.objects->keys[i]);
  done.bytes += bytes;
  done.bytes_by_tier[static_cast<size_t>(tier_kind::disk)] += bytes;
  done.chunks += usable_ / load_.subject.objects_per_chunk;
  load_.begin += usable_;
  return bytes;
}

hold_ptr device_window::leased() const {
  hold_ptr held = held_in(load_.subject.leased, tier_kind::gpu);
  if (!held || held->places().size() < part_.end)
    return nullptr;
  return part_of(held, part_.begin, part_.end);
}

bool device_window::add_held(hold_ptr held) {
  held_ = std::move(held);
  if (!held_)
    return false;
  const auto& places = held_->places();
  while (usable_ < places.size() && places[usable_].present())
    ++usable_;
  usable_ -= usable_ % load_.subject.objects_per_chunk;
  return usable_ != 0;
}

confirm_request device_window::confirmation() const {
  confirm_request request;
  for (size_t i = 0; i < usable_; ++i)
    request.ids.push_back(held_->places()[i].id);
  return request;
}

bool device_window::add_confirmed(const std::vector<bool>& present) {
  const size_t wanted = usable_;
  usable_ = static_cast<size_t>(std::find(present.begin(), present.end(), false) - present.begin());
  usable_ -= usable_ % load_.subject.objects_per_chunk;
  return usable_ == wanted;
}

device_load_request device_window::request() const {
  const load_subject& subject = load_.subject;
  device_load_request request;
  copy_request& copy = request.copy;
  copy.direction = copy_direction::out_of_arena;
  copy.outside = subject.target;
  copy.runs = subject.runs;
  copy.context = subject.context;
  copy.owners = {held_};
  size_t first = subject.order ? subject.order.pool_of(part_.begin) : 0;
  copy.arrived = {subject.arrivals, first, subject.objects_per_chunk,
                  static_cast<uint32_t>(usable_ / subject.objects_per_chunk)};
  size_t end = subject.order ? subject.order.end_of_pool(part_.begin) : subject.objects->size();
  if (part_.begin + usable_ == end && subject.generations.page)
    copy.generations = subject.generations.part(first, subject.objects_per_chunk);
  for (size_t i = 0; i < usable_; ++i) {
    const object_place& place = held_->places()[i];
    copy.objects.push_back(
        {nullptr, subject.order.number_of(part_.begin + i), place.offset + object_header_bytes});
    request.ids.push_back(place.id);
  }
  return request;
}

uint64_t device_window::deliver() {
  load_result& done = load_.done;
  uint64_t bytes = 0;
  for (size_t i = 0; i < usable_; ++i)
    bytes += part_.objects->payload_bytes[i];
  done.bytes += bytes;
  done.bytes_by_tier[static_cast<size_t>(tier_kind::gpu)] += bytes;
  done.chunks += usable_ / load_.subject.objects_per_chunk;
  load_.begin += usable_;
  return bytes;
}

} // namespace terrace
