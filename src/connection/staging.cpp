#include "connection/staging.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace terrace {

namespace {

constexpr uint64_t alignment_bytes = allocator_options{}.alignment_bytes;

/// Bytes of staging memory that the objects take.
uint64_t bytes_of(const std::vector<uint64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}, [](uint64_t sum, uint64_t bytes) {
    return sum + (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  });
}

} // namespace

chunks_to_write absent_chunks(const object_batch& all, size_t objects_per_chunk,
                              const object_bitmap& present) {
  auto absent = std::make_shared<object_batch>();
  absent->trailing = all.trailing;
  std::vector<bool> wanted(all.size());
  for (size_t c = 0; c < all.size(); c += objects_per_chunk) {
    bool whole = true;
    for (size_t i = c; i < c + objects_per_chunk; ++i)
      whole = whole && present.test(i);
    for (size_t i = c; i < c + objects_per_chunk && !whole; ++i) {
      wanted[i] = true;
      absent->keys.push_back(all.keys[i]);
      absent->parents.push_back(all.parents[i]);
      absent->payload_bytes.push_back(all.payload_bytes[i]);
    }
  }
  return {std::move(absent), std::move(wanted)};
}

result<std::unique_ptr<staging>> staging::create(uint64_t bytes, size_t reservations_max,
                                                 const teardown_ptr& teardown) {
  auto memory = arena::create({.name = "terrace-staging", .bytes = bytes, .client_may_write = true});
  if (!memory)
    return tl::unexpected(memory.error());
  auto space = make_allocator("free_list", {.capacity_bytes = bytes, .boundary_bytes = 0});
  if (!space)
    return tl::unexpected(space.error());
  auto made = std::unique_ptr<staging>(new staging);
  made->memory_ = std::shared_ptr<arena>(new arena(std::move(*memory)), deleted_by{teardown});
  made->space_ = std::move(*space);
  made->reservations_max_ = reservations_max;
  return made;
}

result<uint64_t> staging::reserve(staged reserved, const std::vector<uint64_t>& sizes) {
  if (reserved_.size() >= reservations_max_)
    return fail(errc::busy,
                "the connection has " + std::to_string(reserved_.size()) +
                    " reservations, as many as follow from connection.group_bytes; commit or abort some");
  if (!sizes.empty()) {
    auto extents = space_->allocate(sizes);
    if (!extents) {
      auto usage = space_->usage();
      if (uint64_t bytes = bytes_of(sizes); bytes > usage.capacity_bytes)
        return fail(errc::bad_request, "the objects take " + std::to_string(bytes) +
                                           " bytes, each a multiple of " + std::to_string(alignment_bytes) +
                                           ": expected at most " + std::to_string(usage.capacity_bytes) +
                                           " (connection.staging_bytes); reserve fewer chunks at a time");
      return fail(errc::no_space,
                  "the connection's staging memory has " + std::to_string(usage.free_bytes) + " of " +
                      std::to_string(usage.capacity_bytes) +
                      " bytes free; commit or abort reservations, reserve fewer chunks at a time, or "
                      "raise connection.staging_bytes");
    }
    reserved.extents = std::move(*extents);
  }
  uint64_t id = next_++;
  reserved_.emplace(id, std::move(reserved));
  assert(reserved_.size() <= reservations_max_);
  assert(space_->usage().used_bytes <= space_->usage().capacity_bytes);
  return id;
}

bool staging::in_use(space_id space) const {
  return std::any_of(reserved_.begin(), reserved_.end(), [space](const auto& each) {
    return each.second.space && each.second.space->id == space;
  });
}

const staged* staging::find(uint64_t reservation) const {
  auto entry = reserved_.find(reservation);
  return entry == reserved_.end() ? nullptr : &entry->second;
}

result<std::shared_ptr<staged>> staging::take(uint64_t reservation) {
  auto entry = reserved_.find(reservation);
  if (entry == reserved_.end())
    return fail(errc::not_found,
                "reservation " + std::to_string(reservation) +
                    " does not exist: it was committed or aborted, or belongs to another connection");
  auto taken = std::make_shared<staged>(std::move(entry->second));
  reserved_.erase(entry);
  committing_ += taken->extents.size();
  return taken;
}

void staging::put_back(const staged& reserved) {
  committing_ -= reserved.extents.size();
  if (!reserved.extents.empty())
    space_->free(reserved.extents);
}

std::vector<std::string> staging::check() const {
  std::vector<std::string> all;
  uint64_t extents = committing_;
  for (const auto& [number, one] : reserved_) {
    extents += one.extents.size();
    for (const extent& place : one.extents)
      if (space_->live_size(place.offset) != place.size)
        all.push_back("reservation " + std::to_string(number) + " has " + std::to_string(place.size) +
                      " bytes of staging memory at " + std::to_string(place.offset) +
                      ", which the allocator did not give out");
  }
  if (uint64_t given = space_->usage().allocations; given != extents)
    all.push_back(std::to_string(given) + " extents of staging memory are in use, and reservations have " +
                  std::to_string(extents));
  return all;
}

} // namespace terrace
