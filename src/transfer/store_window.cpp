#include "transfer/store_window.hpp"

#include "base/window_refill.hpp"
#include "index/object_header.hpp"

#include <algorithm>

namespace terrace {

uint64_t store_window::physical_bytes() const {
  uint64_t bytes = 0;
  for (uint64_t each : objects_->payload_bytes)
    bytes += physical_bytes_for(each);
  return bytes;
}

acquire_request store_window::space(const context_ptr& context, bool may_shrink) const {
  acquire_request request;
  request.objects = objects_;
  request.may_fill = wanted_;
  bool told = context && context->inference != 0;
  request.note_access = abandoned_ + evicted_ == 0 && !told;
  request.may_come_again = may_shrink;
  request.context = context;
  return request;
}

store_window::rest store_window::rest_of(const acquire_answer& acquired) {
  if (acquired.any(acquired_state::pending))
    return rest::written_by_others;
  std::vector<bool> present(acquired.states.size());
  std::transform(acquired.states.begin(), acquired.states.end(), present.begin(),
                 [](acquired_state state) { return state != acquired_state::absent; });
  size_t missing = objects_to_refill(present);
  if (missing == 0)
    return rest::nothing;
  wanted_.assign(present.size(), false);
  for (size_t i = 0; missing != 0; ++i)
    if (!present[i]) {
      wanted_[i] = true;
      --missing;
    }
  return rest::evicted;
}

bool store_window::any_reserved(const acquire_answer& acquired) {
  return acquired.any(acquired_state::reserved);
}

store_window::next store_window::after_round(rest left) {
  if (left == rest::nothing)
    return next::done;
  if (left == rest::evicted)
    return ++evicted_ > refills_max ? next::done : next::again;
  return next::await;
}

store_window::next store_window::after_wait(bool abandoned) {
  if (abandoned)
    return ++abandoned_ > attempts_max ? next::give_up : next::again;
  return ++evicted_ > attempts_max ? next::done : next::again;
}

copy_request store_window::copy(const acquire_answer& acquired, std::shared_ptr<const scatter_gather> runs,
                                const segmented_arena& memory, bool sums) const {
  copy_request request;
  request.direction = copy_direction::into_arena;
  request.owners = {acquired.reserved};
  request.runs = std::move(runs);
  request.checksums = sums;
  for (size_t i = 0; i < acquired.states.size(); ++i)
    if (acquired.states[i] == acquired_state::reserved)
      request.objects.push_back({.inside = payload_at(memory, acquired.places[i]),
                                 .number = begin_ + i,
                                 .bytes = acquired.places[i].payload_bytes});
  return request;
}

publish_request store_window::publication(const acquire_answer& acquired, uint64_t& bytes) {
  publish_request request;
  request.places.resize(acquired.places.size());
  for (size_t i = 0; i < acquired.states.size(); ++i) {
    if (acquired.states[i] != acquired_state::reserved)
      continue;
    request.places[i] = acquired.places[i];
    copied_[i] = true;
    bytes += acquired.places[i].payload_bytes;
  }
  return request;
}

std::vector<uint64_t> store_window::checksums(const acquire_answer& acquired,
                                              const std::vector<uint64_t>& sums) {
  std::vector<uint64_t> all(sums.empty() ? 0 : acquired.places.size());
  auto sum = sums.begin();
  for (size_t i = 0; i < all.size(); ++i)
    if (acquired.states[i] == acquired_state::reserved)
      all[i] = *sum++;
  return all;
}

store_window::chunks store_window::count(size_t objects_per_chunk) const {
  chunks sum;
  auto per_chunk = static_cast<ptrdiff_t>(objects_per_chunk);
  for (auto first = copied_.begin(); first != copied_.end(); first += per_chunk) {
    bool any = std::find(first, first + per_chunk, true) != first + per_chunk;
    ++(any ? sum.stored : sum.present);
  }
  return sum;
}

std::byte* payload_at(const segmented_arena& memory, const object_place& place) {
  return memory.at(place.offset) + object_header_bytes;
}

} // namespace terrace
