// The memory of a tier: one or more arenas (segments) in one address space, added and removed while in use.
#pragma once

#include "memory/arena.hpp"
#include "memory/teardown.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace terrace {

struct segmented_arena_options {
  std::string name = "terrace-arena";
  uint64_t bytes = 0; ///< a multiple of 4 KiB (of 2 MiB with huge pages)
  /// Size of every segment except the last of each growth; at most 1 GiB, the limit of a registered buffer.
  uint64_t segment_bytes = 1ULL << 30;
  bool huge_pages = false;
  std::optional<uint32_t> numa_node;
  teardown_ptr teardown; ///< releases segments; null: the thread with the last reference does
};

/// The segments share one address space of offsets, in which no object crosses a multiple of `segment_bytes`
/// (ensured by the allocator's boundary). The number of a segment is its offset divided by `segment_bytes`;
/// it never changes and is never reused.
///
/// Only one thread at a time may modify the arena (`grow`, `retire`, `drop`, `undo`, `prefault`);
/// everything else is safe on any thread. `at` may be called only for offsets of live extents, whose segments
/// are certain to exist.
class segmented_arena {
 public:
  /// Errors: those of `arena::create`.
  static result<std::unique_ptr<segmented_arena>> create(const segmented_arena_options& options);

  uint64_t size() const { return size_.load(std::memory_order_relaxed); } ///< without retired segments
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

  uint32_t segments() const; ///< numbers given out so far
  /// Null if the segment was dropped or never existed.
  std::shared_ptr<const arena> segment(uint32_t number) const;
  /// Like `segment`, for a descriptor that is passed to a client: hold the result as long as the client may
  /// have it mapped.
  std::shared_ptr<const arena> lend(uint32_t number) const;

  /// The address range of a segment.
  struct range {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  range range_of(uint32_t number) const;

  /// Adds segments at the end, of `bytes` in total, all or none. `gap_bytes` of address space before them
  /// stay empty if the last segment was shorter than the others.
  struct growth {
    uint64_t gap_bytes = 0;
    uint32_t first = 0; ///< number of the first new segment
    uint32_t end = 0;   ///< one past the last
  };
  result<growth> grow(uint64_t bytes);
  /// Undoes the last growth, which must not have been published.
  void undo(const growth& last);

  /// Chooses segments of at least `bytes` in total from the end of the address space, those not mapped by
  /// clients first.
  std::vector<uint32_t> choose(uint64_t bytes) const;
  /// Removes the segment from the arena's size. Its bytes stay readable.
  void retire(uint32_t number);
  /// Releases a segment. It must contain no objects and be registered with no ring. Its memory is freed when
  /// the last client unmaps it.
  void drop(uint32_t number);
  /// Bytes of retired segments whose memory still exists.
  uint64_t leaving_bytes() const;

  /// Commits about `bytes` more, segment after segment; true once everything is committed. Errors: those of
  /// `arena::prefault`.
  result<bool> prefault(uint64_t bytes);

  uint64_t huge_page_bytes() const; ///< the size of the segments with huge pages
  /// Why some segments have ordinary pages although huge pages were requested; otherwise empty.
  std::string huge_pages_refusal() const;

 private:
  struct slot {
    std::shared_ptr<arena> memory;
    std::shared_ptr<arena> lent; ///< keeps `what`; its use count is the number of clients
    std::weak_ptr<arena> gone;   ///< set when it is dropped
    uint64_t bytes = 0;
    bool retired = false;
  };

  explicit segmented_arena(const segmented_arena_options& options);

  segmented_arena_options options_;
  uint32_t segments_max_;
  std::unique_ptr<std::atomic<std::byte*>[]> begins_;
  std::atomic<uint64_t> size_{0};
  uint32_t prefaulting_ = 0;
  mutable std::mutex lock_; ///< protects the slots; never held while memory is touched
  std::vector<slot> slots_;
};

} // namespace terrace
