#include "tier/object_hold.hpp"

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

void object_hold::append(size_t first, object_hold&& more) {
  assert((tier_ == nullptr || more.tier_ == tier_) && first >= places_.size());
  tier_ = more.tier_;
  places_.resize(first);
  places_.insert(places_.end(), more.places_.begin(), more.places_.end());
  more.places_.clear();
}

void object_hold::keep_only(const std::vector<bool>& keeps) {
  std::vector<object_id> ids;
  for (size_t i = 0; i < places_.size(); ++i)
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

} // namespace terrace
