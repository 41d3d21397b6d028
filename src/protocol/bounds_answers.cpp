// Bounds of answers, checked by clients.
#include "protocol/bounds_checks.hpp"

namespace terrace::protocol {

namespace {

/// Checks the digest of a session, which is absent if there is none.
result<void> check_digest(const char* field, const byte_vector* value) {
  return value == nullptr ? result<void>{}
                          : check_number(field, value->size(), digest::min_size, digest::max_size);
}

} // namespace

result<void> check_pools(const flatbuffers::Vector<flatbuffers::Offset<wire::OpenPool>>* pools) {
  if (!pools)
    return {};
  for (const auto* pool : *pools)
    if (auto ok = check_aligned("tensors", pool->tensors()); !ok)
      return ok;
  return {};
}

result<void> check_locations(const flatbuffers::Vector<const wire::Location*>& locations) {
  if (auto ok = check_aligned("locations", &locations); !ok)
    return ok;
  for (const auto* place : locations)
    if (place->bytes() > object_bytes_max || place->offset() > region_bytes_max - place->bytes())
      return refuse("expected locations of at most " + std::to_string(object_bytes_max) +
                    " bytes inside a segment, got " + std::to_string(place->bytes()) + " bytes at " +
                    std::to_string(place->offset()));
  return {};
}

result<void> check(const wire::LookupAnswer& table) {
  if (size_of(table.tiers()) != table.found_chunks())
    return refuse("expected one tier a found chunk (" + std::to_string(table.found_chunks()) + "), got " +
                  std::to_string(size_of(table.tiers())));
  if (auto ok = check_number("found_chunks", table.found_chunks(), 0, table.requested_chunks()); !ok)
    return ok;
  if (auto ok = check_digest("session_digest", table.session_digest()); !ok)
    return ok;
  if (auto ok = check_aligned("cursors", table.cursors()); !ok)
    return ok;
  if (auto ok = check_number("number of cursors", size_of(table.cursors()), 0, open_pools_max); !ok)
    return ok;
  if (auto ok = check_number("size of logits in bytes", size_of(table.logits()), 0, logits_bytes_max); !ok)
    return ok;
  return check_id("lease", table.lease(), true);
}

result<void> check(const wire::SaveSessionAnswer& table) {
  if (auto ok = check_digest("session_digest", table.session_digest()); !ok)
    return ok;
  return check_id("lease", table.lease(), true);
}

result<void> check(const wire::ForkSessionAnswer& table) {
  if (auto ok = check_digest("digest", table.digest()); !ok)
    return ok;
  return check_id("session", table.session(), false);
}

result<void> check(const wire::SessionsAnswer& table) {
  for (const auto* one : *table.sessions())
    if (auto ok = check_id("session", one->session(), false); !ok)
      return ok;
  return {};
}

result<void> check(const wire::LeasesAnswer& table) {
  for (const auto* one : *table.leases())
    if (auto ok = check_id("lease", one->lease(), false); !ok)
      return ok;
  return {};
}

result<void> check(const wire::StatusAnswer& table) {
  for (const auto* group : *table.groups())
    if (group->open_spaces())
      for (const auto* space : *group->open_spaces())
        if (auto ok = check_pools(space->pools()); !ok)
          return ok;
  return check_id("boot", table.boot(), false);
}

} // namespace terrace::protocol
