// One allocator over the arenas of several paths, each with its own allocator.
//
// An object is stored on one path. The objects of a batch, and those of consecutive batches, are distributed
// over the paths in proportion to their free bytes (smooth weighted round robin, as in nginx), so that
// objects read together are on different paths, and an emptier path fills faster. If the selected path has no
// room, another takes the object.
#pragma once

#include "memory/allocator.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace terrace {

// Maps the arenas of several paths into one address space, end to end.

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

class striped_allocator final : public allocator {
 public:
  /// True if objects may be placed on the path now; called at every allocation.
  using path_check = std::function<bool(size_t path)>;

  /// `paths`: allocators of one kind with the same options except for the capacity, one per arena of `map`.
  /// Objects on a path for which `usable` is false stay; `choose` lists them as victims in their turn
  /// although that makes no room.
  striped_allocator(std::vector<std::unique_ptr<allocator>> paths, const path_map& map, path_check usable);

  std::string_view name() const override { return paths_.front()->name(); }
  result<std::vector<extent>> allocate(std::span<const uint64_t> sizes) override;
  result<void> adopt(std::span<const extent> extents, std::span<const uint64_t> requested) override;
  void free(std::span<const extent> extents) override;
  uint64_t physical_size(uint64_t bytes) const override { return paths_.front()->physical_size(bytes); }
  uint64_t largest_possible() const override;
  allocator_usage usage() const override; ///< the largest free run is that of a usable path
  uint64_t room_bytes() const override;   ///< on usable paths
  void expect(uint64_t smallest_bytes) override;
  using allocator::grow;
  result<void> grow(uint64_t bytes, uint64_t gap_bytes) override; ///< extends the last path
  result<void> retire(extent range) override;                     ///< the range lies on one path
  uint64_t used_in(extent range) const override;
  uint64_t live_size(uint64_t offset) const override {
    return paths_[map_.path_of(offset)]->live_size(map_.local(offset));
  }
  std::optional<std::vector<size_t>> choose(std::span<const uint64_t> sizes,
                                            std::span<const extent> candidates) override;

 private:
  using assignment = std::vector<size_t>; ///< the path of each object of a batch

  struct remembered {
    std::vector<uint64_t> sizes;
    assignment paths;
  };

  extent local(extent e) const { return {map_.local(e.offset), e.size}; }
  std::vector<uint64_t> free_of_usable() const;
  assignment spread(std::span<const uint64_t> sizes, std::vector<uint64_t> room,
                    std::vector<int64_t>& turns) const;
  bool place(std::span<const uint64_t> sizes, const assignment& where, std::vector<extent>& taken);
  bool place_left(std::span<const uint64_t> sizes, std::vector<size_t> left, std::vector<extent>& taken);
  std::optional<extent> take_one(size_t path, uint64_t size);
  void give_back(std::vector<extent>& taken);
  bool try_allocate(std::span<const uint64_t> sizes, std::vector<extent>& taken);
  void note_smallest();

  class choosing;

  std::vector<std::unique_ptr<allocator>> paths_;
  path_map map_;
  path_check usable_;
  std::vector<int64_t> turns_; ///< how far each path is behind the others; the sum is 0
  remembered chosen_;          ///< how the last `choose` would place its batch
  uint64_t expected_ = 0;
  uint64_t told_ = 0; ///< the value passed to all paths: the smallest object of any
};

} // namespace terrace
