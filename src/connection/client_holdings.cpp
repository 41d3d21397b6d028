#include "connection/client_holdings.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace terrace {

// ---- spaces ----

client_space_ptr client_holdings::space(space_id id) const {
  auto entry = spaces_.find(id);
  return entry == spaces_.end() ? nullptr : entry->second;
}

result<void> client_holdings::add(client_space_ptr opened) {
  auto id = opened->what->id;
  if (!spaces_.contains(id) && spaces_.size() >= most_.spaces)
    return fail(errc::busy, "the connection has " + std::to_string(spaces_.size()) +
                                " spaces open, as many as connection.spaces_max allows; close some");
  spaces_[id] = std::move(opened);
  assert(spaces_.size() <= most_.spaces);
  return {};
}

result<void> client_holdings::close_space(space_id id) {
  auto entry = spaces_.find(id);
  auto number = std::to_string(static_cast<uint32_t>(id));
  if (entry == spaces_.end())
    return fail(errc::not_found, "this connection has not opened space " + number);
  auto held = std::find_if(leases_.begin(), leases_.end(), [id](const auto& each) {
    return each.second.what->in && each.second.what->in->id == id;
  });
  if (held != leases_.end())
    return fail(errc::busy, "the connection holds a lease in space " + number + "; release it first");
  if (staging_ && staging_->in_use(id))
    return fail(errc::busy,
                "the connection has a reservation in space " + number + "; commit or abort it first");
  spaces_.erase(entry);
  return {};
}

// ---- regions ----

result<region_id> client_holdings::add(client_region_ptr region) {
  if (regions_.size() >= most_.regions)
    return fail(errc::busy, "the connection has " + std::to_string(regions_.size()) +
                                " regions, as many as connection.regions_max allows; unregister one");
  auto id = static_cast<region_id>(next_region_++);
  region_bytes_ += region->size();
  regions_.emplace(id, std::move(region));
  assert(regions_.size() <= most_.regions);
  return id;
}

client_region_ptr client_holdings::region(region_id id) const {
  auto entry = regions_.find(id);
  return entry == regions_.end() ? nullptr : entry->second;
}

client_region_ptr client_holdings::remove(region_id id) {
  auto entry = regions_.find(id);
  if (entry == regions_.end())
    return nullptr;
  auto removed = std::move(entry->second);
  regions_.erase(entry);
  region_bytes_ -= removed->size();
  return removed;
}

// ---- staging memory ----

result<staging*> client_holdings::staging_memory() {
  if (!staging_) {
    auto made = staging::create(most_.staging_bytes, most_.reservations, teardown_);
    if (!made)
      return tl::unexpected(made.error());
    staging_ = std::move(*made);
  }
  return staging_.get();
}

// ---- leases ----

result<void> client_holdings::may_lease() const {
  if (leases_.size() < most_.leases)
    return {};
  return fail(errc::busy, "the connection holds " + std::to_string(leases_.size()) +
                              " leases, as many as connection.leases_max allows; release some");
}

result<void> client_holdings::may_name(size_t objects) const {
  if (lease_objects_ + objects <= most_.lease_objects)
    return {};
  return fail(errc::busy, "the leases of the connection name " + std::to_string(lease_objects_) +
                              " objects; " + std::to_string(objects) +
                              " more would exceed connection.lease_objects_max (" +
                              std::to_string(most_.lease_objects) + "); release some");
}

size_t objects_of(const lease& taken) {
  size_t objects = 0;
  for (const tier_hold& one : taken.held) // parallel
    objects = std::max(objects, one.held->places().size());
  return objects;
}

void client_holdings::add(lease_ptr taken) {
  auto id = taken->id;
  held_lease held;
  held.owner = true;
  held.objects = objects_of(*taken);
  held.what = std::move(taken);
  lease_objects_ += held.objects;
  leases_.emplace(id, std::move(held));
  assert(leases_.size() <= most_.leases && lease_objects_ <= most_.lease_objects); // it was asked before
}

lease_ptr client_holdings::lease_of(const lease_id& id) const {
  auto entry = leases_.find(id);
  return entry == leases_.end() ? nullptr : entry->second.what;
}

result<void> client_holdings::read(const lease_ptr& from, const std::vector<object_place>& places,
                                   const std::vector<hold_ptr>& holds) {
  auto known = leases_.find(from->id);
  bool news = known == leases_.end() || std::any_of(places.begin(), places.end(), [&](const object_place& p) {
                return !known->second.told.contains(p.id);
              });
  if (!news)
    return {};
  size_t fresh = places.size();
  if (known != leases_.end())
    fresh = static_cast<size_t>(std::count_if(places.begin(), places.end(), [&](const object_place& place) {
      return !known->second.told.contains(place.id);
    }));
  if (known != leases_.end() && known->second.owner)
    fresh = 0; // its objects are counted since it was taken
  if (auto ok = may_name(fresh); !ok)
    return ok;
  auto& held = leases_[from->id];
  held.what = from;
  for (const object_place& place : places)
    held.told.insert(place.id);
  held.reading.insert(held.reading.end(), holds.begin(), holds.end());
  held.objects += fresh;
  held.read += fresh;
  lease_objects_ += fresh;
  return {};
}

void client_holdings::has_read(const lease_id& id) {
  auto known = leases_.find(id);
  if (known == leases_.end())
    return;
  held_lease& held = known->second;
  held.reading.clear();
  held.told.clear();
  held.objects -= held.read;
  lease_objects_ -= std::exchange(held.read, 0);
}

std::optional<client_holdings::ended_lease> client_holdings::release(const lease_id& id) {
  auto entry = leases_.find(id);
  if (entry == leases_.end())
    return std::nullopt;
  ended_lease ended{entry->second.owner, entry->second.old};
  lease_objects_ -= entry->second.objects;
  leases_.erase(entry);
  return ended;
}

bool client_holdings::may_be_reading(const lease_id& id) const {
  auto entry = leases_.find(id);
  return entry != leases_.end() && !entry->second.reading.empty();
}

client_holdings::aged client_holdings::old_leases(clock::time_point now, clock::duration after) {
  aged found;
  for (auto& [id, held] : leases_) {
    if (!held.owner || held.old)
      continue;
    auto due = held.what->taken + after;
    if (due > now) {
      found.next = std::min(found.next, due);
      continue;
    }
    held.old = true;
    found.old.push_back(held.what);
  }
  return found;
}

// ---- the end ----

std::vector<client_holdings::ended_lease> client_holdings::close() {
  regions_.clear();
  region_bytes_ = 0;
  staging_.reset();
  spaces_.clear();
  std::vector<ended_lease> ended;
  for (auto& [id, held] : leases_)
    if (std::exchange(held.owner, false))
      ended.push_back({true, held.old});
  std::erase_if(leases_, [](const auto& entry) { return entry.second.reading.empty(); });
  return ended;
}

void client_holdings::end_readings() {
  for (auto& [id, held] : leases_)
    held.reading.clear();
}

uint64_t client_holdings::reading_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [id, held] : leases_)
    for (const hold_ptr& objects : held.reading)
      for (const object_place& place : objects->places())
        bytes += place.physical_bytes;
  return bytes;
}

} // namespace terrace
