// Splits the copies of load_under_lease into parts: which chunks it reads next, and where it copies them. For
// callers that read the lease themselves.
//
//   for (lease_parts parts(range, into); parts.more();)
//     auto copied = parts.copy(... read_lease(id, parts.range(), until, pools, parts.earlier()) ...);
#pragma once

#include "client/client.hpp"

namespace terrace::client {

/// Used by one thread at a time. The first part is the whole range, unless host memory has no room for all of
/// it at once.
class lease_parts {
 public:
  /// `into`: one destination per object; valid until the last copy.
  lease_parts(chunk_range range, std::span<const std::span<uint8_t>> into,
              earlier_places earlier = earlier_places::kept)
      : range_(range), left_(into), earlier_(earlier) {
    bool even = range.count != 0 && into.size() % range.count == 0;
    // 0: the number of objects does not fit the range, so no part can be computed.
    per_chunk_ = even ? into.size() / range.count : 0;
  }

  bool more() const { return more_; }
  chunk_range range() const { return range_; }
  /// The earlier places are given up from the second part on.
  earlier_places earlier() const { return earlier_; }
  uint64_t bytes() const { return bytes_; } ///< bytes copied so far

  /// Copies the objects that were read. Error: `bad_request` if the destinations do not match the objects'
  /// number and sizes.
  result<void> copy(std::span<const std::span<const uint8_t>> objects);

 private:
  chunk_range range_;
  std::span<const std::span<uint8_t>> left_;
  earlier_places earlier_;
  size_t per_chunk_ = 0;
  uint64_t bytes_ = 0;
  bool more_ = true;
};

} // namespace terrace::client
