// The daemon's memory as it is mapped here: arena segments to read, staging segments to write.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <span>
#include <unordered_map>

namespace terrace::client::detail {

/// The mappings of one channel. They stay until the last holder lets go, also when the daemon is gone: whoever reads
/// under a lease at that moment reads on safely.
class segments {
 public:
  segments() = default;
  segments(const segments&) = delete;
  segments& operator=(const segments&) = delete;
  ~segments();

  bool knows(uint32_t id) const { return mapped_.contains(id); }

  /// Refuses a file that is shorter than `bytes`: touching what lies behind its end would be a fault.
  result<void> map(uint32_t id, const unique_fd& memory, uint64_t bytes, bool writable);

  /// Bounds are checked against the mapping. `for_writing` needs a writable segment.
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
