// Copies out of the mapped arena, on the caller's thread.
#include "client/client.hpp"

#include <cstring>

namespace terrace::client {

result<uint64_t> connection::load_under_lease(const lease& held, chunk_range range,
                                              std::span<const std::span<uint8_t>> into, deadline until,
                                              std::span<const uint8_t> pools) {
  auto located = read_lease(held.id(), range, until, pools);
  if (!located)
    return tl::unexpected<error>(located.error());
  return copy_objects(located->objects, into);
}

result<uint64_t> copy_objects(std::span<const std::span<const uint8_t>> from,
                              std::span<const std::span<uint8_t>> into) {
  if (from.size() != into.size())
    return fail(errc::bad_request, "expected one destination an object (" + std::to_string(from.size()) +
                                       "), got " + std::to_string(into.size()));
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i].size() != into[i].size())
      return fail(errc::bad_request, "expected a destination of " + std::to_string(from[i].size()) +
                                         " bytes for object " + std::to_string(i) + ", got " +
                                         std::to_string(into[i].size()));
  uint64_t bytes = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    std::memcpy(into[i].data(), from[i].data(), from[i].size());
    bytes += from[i].size();
  }
  return bytes;
}

} // namespace terrace::client
