#include "tier/objects/object_hold.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

object_hold::~object_hold() {
  if (tier_ && places_.size() >= many_places)
    tier_->release_places(std::move(places_));
  else
    release(0);
}

void object_hold::keep_first(size_t count) {
  release(count);
  places_.resize(count);
}

bool object_hold::keep_first(size_t count, size_t places_at_most) {
  size_t now = places_.size();
  if (now > count)
    keep_first(std::max(count, now - std::min(now, places_at_most)));
  else
    places_.resize(now + std::min(count - now, places_at_most));
  return places_.size() != count;
}

void object_hold::append(size_t first, object_hold&& more) {
  assert((tier_ == nullptr || more.tier_ == tier_) && first >= places_.size());
  tier_ = more.tier_;
  places_.resize(first);
  places_.insert(places_.end(), more.places_.begin(), more.places_.end());
  more.places_.clear();
}

void object_hold::keep_only(const std::vector<bool>& keeps, size_t first, size_t count) {
  std::vector<object_id> ids;
  for (size_t i = first; i < std::min(first + count, places_.size()); ++i)
    if (places_[i].present() && !keeps[i])
      ids.push_back(std::exchange(places_[i], {}).id);
  if (tier_ && !ids.empty())
    tier_->release(std::move(ids));
}

void object_hold::release(size_t begin) {
  if (!tier_)
    return;
  std::vector<object_id> ids;
  for (size_t i = begin; i < places_.size(); ++i)
    if (places_[i].present())
      ids.push_back(places_[i].id);
  if (!ids.empty())
    tier_->release(std::move(ids));
}

hold_ptr part_of(keep_alive whole, std::vector<object_place> places) {
  return hold_ptr(new object_hold(release_sink_ptr{}, std::move(places)),
                  [whole = std::move(whole)](object_hold* part) { delete part; });
}

hold_ptr part_of(const hold_ptr& whole, size_t begin, size_t end) {
  auto first = whole->places().begin();
  return part_of(whole,
                 std::vector(first + static_cast<ptrdiff_t>(begin), first + static_cast<ptrdiff_t>(end)));
}

} // namespace terrace
