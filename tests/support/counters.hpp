// A client's counters of what has arrived, in memory of this process.
#pragma once

#include "transfer/arrival_counters.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

namespace terrace::test {

/// A page of counters in a sealed memfd.
class client_counters {
 public:
  static constexpr uint64_t bytes = 4096;

  explicit client_counters(int more_seals = 0) {
    unique_fd fd(::memfd_create("counters", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (::ftruncate(fd.get(), bytes) != 0 || ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | more_seals) != 0)
      throw std::runtime_error("making counters");
    auto opened = client_region::open(std::move(fd), bytes);
    if (!opened)
      throw std::runtime_error(opened.error().text);
    region = std::move(*opened);
  }

  /// Returns counters at the region's beginning.
  std::shared_ptr<const arrival_counters> first(size_t count) const {
    return arrival_counters::in(region, 0, count).value();
  }
  std::vector<uint32_t> values(size_t count) const {
    const auto* words = reinterpret_cast<const uint32_t*>(region->data());
    return {words, words + count};
  }

  std::shared_ptr<const client_region> region;
};

} // namespace terrace::test
