// The daemon's memory mapped here: arena segments for reading, staging segments for writing.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "client/client.hpp"

#include <cstdint>
#include <span>
#include <unordered_map>

namespace terrace::client {

// Splits the copies of load_under_lease into parts: which chunks it reads next, and where it copies them. For
// callers that read the lease themselves.
//
//   for (lease_parts parts(range, into); parts.more();)
//     auto copied = parts.copy(... read_lease(id, parts.range(), until, pools, parts.earlier()) ...);

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

namespace terrace::client::detail {

/// The mappings of one channel. They stay until the last holder releases them, even if the daemon is gone, so
/// that reading under a lease stays safe.
class segments {
 public:
  segments() = default;
  segments(const segments&) = delete;
  segments& operator=(const segments&) = delete;
  ~segments();

  bool knows(uint32_t id) const { return mapped_.contains(id); }

  /// Refuses a file shorter than `bytes`, because accessing memory beyond its end would be a fault.
  result<void> map(uint32_t id, const unique_fd& memory, uint64_t bytes, bool writable);

  /// Checks bounds against the mapping. `for_writing` needs a writable segment.
  result<std::span<uint8_t>> at(uint32_t id, uint64_t offset, uint64_t bytes, bool for_writing) const;

 private:
  struct mapping {
    uint8_t* data;
    uint64_t bytes;
    bool writable;
  };
  std::unordered_map<uint32_t, mapping> mapped_;
};

} // namespace terrace::client::detail
