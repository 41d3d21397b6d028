// A tier's memory: one or more arenas side by side, addressed as one run of bytes.
#pragma once

#include "memory/arena.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

struct segmented_arena_options {
  std::string name = "terrace-arena";
  uint64_t bytes = 0; ///< a multiple of 4 KiB (of 2 MiB with huge pages)
  uint64_t segment_bytes =
      1ULL << 30; ///< every segment but the last; at most 1 GiB, the limit of a registered buffer
  bool huge_pages = false;
};

/// The segments share one address space of offsets, in which no object crosses a multiple of `segment_bytes` (the
/// allocator's boundary sees to that). Immutable after `create` but for `prefault`; `at` from any thread.
class segmented_arena {
 public:
  /// Errors: those of `arena::create`.
  static result<segmented_arena> create(const segmented_arena_options& options);

  uint64_t size() const { return size_; }
  uint64_t segment_bytes() const { return segment_bytes_; }
  const std::vector<arena>& segments() const { return segments_; }

  std::byte* at(uint64_t offset) const {
    return segments_[offset / segment_bytes_].data() + offset % segment_bytes_;
  }

  struct location {
    uint32_t segment = 0;
    uint64_t offset = 0; ///< in the segment
  };
  location locate(uint64_t offset) const {
    return {static_cast<uint32_t>(offset / segment_bytes_), offset % segment_bytes_};
  }

  /// Commits about `bytes` more, segment after segment; true when all is committed. Errors: those of `arena::prefault`.
  result<bool> prefault(uint64_t bytes);

 private:
  segmented_arena() = default;
  std::vector<arena> segments_;
  uint64_t size_ = 0;
  uint64_t segment_bytes_ = 0;
  size_t prefaulting_ = 0;
};

} // namespace terrace
