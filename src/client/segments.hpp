// The daemon's memory mapped here: arena segments for reading, staging segments for writing.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <span>
#include <unordered_map>

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
