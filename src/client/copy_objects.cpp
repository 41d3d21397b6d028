// Copies from the mapped arena, on the caller's thread.
#include "base/copy_memory.hpp"
#include "client/lease_parts.hpp"

namespace terrace::client {

result<uint64_t> connection::load_under_lease(const lease& held, chunk_range range,
                                              std::span<const std::span<uint8_t>> into, deadline until,
                                              std::span<const uint8_t> pools, earlier_places earlier) {
  lease_parts parts(range, into, earlier);
  while (parts.more()) {
    auto located = read_lease(held.id(), parts.range(), until, pools, parts.earlier());
    if (!located)
      return tl::unexpected<error>(located.error());
    if (auto copied = parts.copy(located->objects); !copied)
      return tl::unexpected<error>(copied.error());
  }
  return parts.bytes();
}

result<void> lease_parts::copy(std::span<const std::span<const uint8_t>> objects) {
  size_t came = objects.size();
  more_ = came != 0 && per_chunk_ != 0 && came % per_chunk_ == 0 && came < left_.size();
  auto some = copy_objects(objects, more_ || came == 0 ? left_.first(came) : left_);
  if (!some)
    return tl::unexpected<error>(some.error());
  bytes_ += *some;
  if (!more_)
    return {};
  left_ = left_.subspan(came);
  auto chunks = static_cast<uint32_t>(came / per_chunk_);
  range_ = {range_.first + chunks, range_.count - chunks};
  earlier_ = earlier_places::given_up;
  return {};
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
    copy_memory(into[i].data(), from[i].data(), from[i].size());
    bytes += from[i].size();
  }
  return bytes;
}

} // namespace terrace::client
