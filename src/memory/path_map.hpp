// Maps the arenas of several paths into one address space, end to end.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace terrace {

/// Immutable; safe on any thread.
class path_map {
 public:
  /// `bytes` has the size of each path's arena, none 0; at least one path.
  explicit path_map(std::span<const uint64_t> bytes) {
    for (uint64_t each : bytes) {
      begins_.push_back(end_);
      end_ += each;
    }
    assert(!begins_.empty());
  }

  size_t paths() const { return begins_.size(); }
  uint64_t begin(size_t path) const { return begins_[path]; }
  uint64_t end(size_t path) const { return path + 1 == paths() ? end_ : begins_[path + 1]; }

  /// Offsets beyond the end belong to the last path.
  size_t path_of(uint64_t offset) const {
    return static_cast<size_t>(std::upper_bound(begins_.begin() + 1, begins_.end(), offset) -
                               begins_.begin()) -
           1;
  }
  /// Returns the offset within the arena of its path.
  uint64_t local(uint64_t offset) const { return offset - begins_[path_of(offset)]; }

 private:
  std::vector<uint64_t> begins_;
  uint64_t end_ = 0;
};

} // namespace terrace
