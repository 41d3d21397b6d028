// Copies from the mapped arena, on the caller's thread.
#include "client/client.hpp"

#include <cstring>

namespace terrace::client {

result<uint64_t> connection::load_under_lease(const lease& held, chunk_range range,
                                              std::span<const std::span<uint8_t>> into, deadline until,
                                              std::span<const uint8_t> pools, earlier_places earlier) {
  uint64_t bytes = 0;
  size_t copied = 0;
  bool even = range.count != 0 && into.size() % range.count == 0;
  size_t per_chunk = even ? into.size() / range.count : 0; // 0: a part cannot be told from a mistake
  while (true) {
    auto located = read_lease(held.id(), range, until, pools, earlier);
    if (!located)
      return tl::unexpected<error>(located.error());
    size_t came = located->objects.size();
    bool part = came != 0 && per_chunk != 0 && came % per_chunk == 0 && came < into.size() - copied;
    auto rest = into.subspan(copied);
    auto some = copy_objects(located->objects, part || came == 0 ? rest.first(came) : rest);
    if (!some)
      return some;
    bytes += *some;
    if (!part)
      return bytes;
    copied += came;
    range.first += static_cast<uint32_t>(came / per_chunk);
    range.count -= static_cast<uint32_t>(came / per_chunk);
    earlier = earlier_places::given_up;
  }
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
