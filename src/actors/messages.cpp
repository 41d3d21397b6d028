#include "actors/messages.hpp"

#include "actors/interfaces.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <cassert>

namespace terrace::actors {

object_hold::~object_hold() { release(0); }

void object_hold::keep_first(size_t count) {
  release(count);
  places_.resize(count);
}

void object_hold::append(size_t first, object_hold&& more) {
  assert(more.tier_ == tier_ && first >= places_.size());
  places_.resize(first);
  places_.insert(places_.end(), more.places_.begin(), more.places_.end());
  more.places_.clear();
}

void object_hold::keep_only(const std::vector<bool>& keeps) {
  release_notice notice;
  for (size_t i = 0; i < places_.size(); ++i)
    if (places_[i].present() && !keeps[i])
      notice.ids.push_back(std::exchange(places_[i], {}).id);
  if (tier_ && !notice.ids.empty())
    caf::anon_send(tier_, std::move(notice));
}

void object_hold::release(size_t begin) {
  if (!tier_)
    return;
  release_notice notice;
  for (size_t i = begin; i < places_.size(); ++i)
    if (places_[i].present())
      notice.ids.push_back(places_[i].id);
  if (!notice.ids.empty())
    caf::anon_send(tier_, std::move(notice));
}

write_credit::~write_credit() { caf::anon_send(write_through_, write_credit_notice{bytes_}); }

object_reservation::~object_reservation() {
  if (!ids_.empty())
    caf::anon_send(tier_, abandon_notice{std::move(ids_)});
}

} // namespace terrace::actors
