#include "tier/policy/chain_uses.hpp"

#include <algorithm>

namespace terrace {

std::vector<entry_key> chain_uses::chain::part(size_t first, size_t count) const {
  std::vector<entry_key> names;
  names.reserve(count);
  for (size_t i = first; i < first + count; ++i)
    names.push_back(i < states.size() ? states[states.size() - 1 - i] : others[i - states.size()]);
  return names;
}

void chain_uses::name(const object_source& objects, size_t first, size_t count, chain& into) {
  auto part = objects.cut(first, count);
  for (size_t i = part.range.first; i < part.range.first + part.range.count; ++i) {
    const object_key& key = part.objects->keys[i];
    (part.objects->trailing.test(key.pool) ? into.states : into.others).push_back(to_entry_key(key));
  }
}

request_number chain_uses::begin(eviction_tracker& tracker, object_source objects, const request_hints& hints,
                                 policy_time now) {
  if (objects.size() <= at_once_ || waiting_objects_ >= waiting_objects_max) {
    chain names;
    name(objects, 0, std::min(objects.size(), at_once_), names);
    return tracker.begin_request(names.part(0, names.size()), hints, now);
  }
  waiting_objects_ += objects.size();
  use later;
  later.names.states.reserve(
      objects.size()); // neither vector moves while it grows; unused memory is not touched
  later.names.others.reserve(objects.size());
  later.objects = std::move(objects);
  later.request = tracker.begin_long_request(hints, now);
  waiting_.push_back(std::move(later));
  return waiting_.back().request.number();
}

bool chain_uses::step(eviction_tracker& tracker, policy_time now) {
  if (waiting_.empty())
    return false;
  use& first = waiting_.front();
  if (size_t count = std::min(step_objects, first.objects.size() - first.named); count != 0) {
    name(first.objects, first.named, count, first.names);
    first.named += count;
  } else if (count = std::min(step_objects, first.names.size() - first.found); count != 0) {
    tracker.find_part(first.request, first.names.part(first.found, count));
    first.found += count;
  } else if (count = std::min(step_objects, first.names.size() - first.used); count != 0) {
    first.used += count;
    tracker.use_part(first.request, first.names.part(first.names.size() - first.used, count), now);
  }
  if (first.named == first.objects.size() && first.used == first.names.size()) {
    waiting_objects_ -= first.objects.size();
    waiting_.pop_front();
  }
  return !waiting_.empty();
}

} // namespace terrace
