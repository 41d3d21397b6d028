// A tier's memory: one or more arenas side by side, addressed as one run of bytes, to which segments come and from which
// they go.
#pragma once

#include "memory/arena.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace terrace {

struct segmented_arena_options {
  std::string name = "terrace-arena";
  uint64_t bytes = 0; ///< a multiple of 4 KiB (of 2 MiB with huge pages)
  uint64_t segment_bytes =
      1ULL
      << 30; ///< every segment but the last of each growth; at most 1 GiB, the limit of a registered buffer
  bool huge_pages = false;
  std::optional<uint32_t> numa_node;
};

/// The segments share one address space of offsets, in which no object crosses a multiple of `segment_bytes` (the
/// allocator's boundary sees to that). A segment has one number for good, and numbers are not used again: offset divided
/// by `segment_bytes`.
///
/// One thread at a time changes it (`grow`, `retire`, `drop`, `take_back`, `prefault`); everything else is for any
/// thread. `at` is for offsets of live extents alone: whoever gave out the extent knows that its segment is there.
class segmented_arena {
 public:
  /// Errors: those of `arena::create`.
  static result<std::unique_ptr<segmented_arena>> create(const segmented_arena_options& options);

  uint64_t size() const { return size_.load(std::memory_order_relaxed); } ///< without what was retired
  uint64_t segment_bytes() const { return options_.segment_bytes; }

  std::byte* at(uint64_t offset) const {
    return begins_[offset / options_.segment_bytes].load(std::memory_order_acquire) +
           offset % options_.segment_bytes;
  }

  struct location {
    uint32_t segment = 0;
    uint64_t offset = 0; ///< in the segment
  };
  location locate(uint64_t offset) const {
    return {static_cast<uint32_t>(offset / options_.segment_bytes), offset % options_.segment_bytes};
  }

  uint32_t segments() const; ///< numbers given so far
  /// Null: it went, or there never was one.
  std::shared_ptr<const arena> segment(uint32_t number) const;
  /// The same for whoever gives its descriptor to a client: kept for as long as the client may have it mapped.
  std::shared_ptr<const arena> lend(uint32_t number) const;

  /// Bytes of the address space that a segment takes.
  struct range {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  range range_of(uint32_t number) const;

  /// New segments at the end, of `bytes` together, all or none. `gap_bytes` of the address space before them stay empty,
  /// where the last segment was shorter than the others.
  struct growth {
    uint64_t gap_bytes = 0;
    uint32_t first = 0; ///< number of the first new segment
    uint32_t end = 0;   ///< and one behind the last
  };
  result<growth> grow(uint64_t bytes);
  /// Undoes the last growth, of which nobody has heard.
  void take_back(const growth& last);

  /// Segments that together have at least `bytes`, from the end of the address space; those that no client maps first.
  std::vector<uint32_t> choose(uint64_t bytes) const;
  /// It no longer counts as the arena's. Its bytes stay readable.
  void retire(uint32_t number);
  /// Nothing lies in it any more, and no ring has it registered. Its memory goes with the last client that maps it.
  void drop(uint32_t number);
  /// Bytes of retired segments whose memory is still there.
  uint64_t leaving_bytes() const;

  /// Commits about `bytes` more, segment after segment; true when all is committed. Errors: those of `arena::prefault`.
  result<bool> prefault(uint64_t bytes);

  uint64_t huge_page_bytes() const; ///< of the segments that have huge pages
  /// Why some segments have ordinary pages although huge ones were asked for; empty otherwise.
  std::string huge_pages_refusal() const;

 private:
  struct slot {
    std::shared_ptr<arena> what;
    std::shared_ptr<arena> lent; ///< keeps `what`; its count is that of the clients
    std::weak_ptr<arena> gone;   ///< once it was dropped
    uint64_t bytes = 0;
    bool retired = false;
  };

  explicit segmented_arena(const segmented_arena_options& options);

  segmented_arena_options options_;
  uint32_t segments_max_;
  std::unique_ptr<std::atomic<std::byte*>[]> begins_;
  std::atomic<uint64_t> size_{0};
  uint32_t prefaulting_ = 0;
  mutable std::mutex lock_; ///< of the slots; never held while memory is touched
  std::vector<slot> slots_;
};

} // namespace terrace
