#include "connection/staging.hpp"

#include <numeric>

namespace terrace {

result<std::unique_ptr<staging>> staging::create(uint64_t bytes) {
  auto memory = arena::create({.name = "terrace-staging", .bytes = bytes, .client_may_write = true});
  if (!memory)
    return tl::unexpected(memory.error());
  auto space = make_allocator("free_list", {.capacity_bytes = bytes, .boundary_bytes = 0});
  if (!space)
    return tl::unexpected(space.error());
  auto made = std::unique_ptr<staging>(new staging);
  made->memory_ = std::make_shared<arena>(std::move(*memory));
  made->space_ = std::move(*space);
  return made;
}

result<uint64_t> staging::reserve(staged what, const std::vector<uint64_t>& sizes) {
  if (!sizes.empty()) {
    auto extents = space_->allocate(sizes);
    if (!extents) {
      auto usage = space_->usage();
      if (uint64_t bytes = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
          bytes > usage.capacity_bytes)
        return fail(errc::bad_request, "the objects have " + std::to_string(bytes) +
                                           " bytes: expected at most " +
                                           std::to_string(usage.capacity_bytes) +
                                           " (connection.staging_bytes); reserve fewer chunks at a time");
      return fail(errc::no_space,
                  "the connection's staging memory has " + std::to_string(usage.free_bytes) + " of " +
                      std::to_string(usage.capacity_bytes) +
                      " bytes free; commit or abort reservations, reserve fewer chunks at a time, or "
                      "raise connection.staging_bytes");
    }
    what.extents = std::move(*extents);
  }
  uint64_t id = next_++;
  reserved_.emplace(id, std::move(what));
  return id;
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
  return taken;
}

void staging::put_back(const staged& what) {
  if (!what.extents.empty())
    space_->free(what.extents);
}

} // namespace terrace
