// One allocator over the arenas of several paths, each of which has an allocator of its own.
//
// An object lies wholly on one path. Objects of a batch, and those of batches that follow each other, go round the paths:
// each gets turns in proportion to its free bytes (smooth weighted round robin, as in nginx), so that what is read
// together lies apart, and a path that is emptier than the others fills up faster. Where its turn finds no room,
// another path takes the object.
#pragma once

#include "memory/allocator.hpp"
#include "memory/path_map.hpp"

#include <functional>

namespace terrace {

class striped_allocator final : public allocator {
 public:
  /// Whether objects may be put there now; asked at every allocation.
  using path_check = std::function<bool(size_t path)>;

  /// `paths`: allocators of one kind with the same options but for the capacity, whose arenas have these bytes. Objects on a
  /// path that `usable` denies stay; in `choose` they leave in their turn, though that makes no room.
  striped_allocator(std::vector<std::unique_ptr<allocator>> paths, const path_map& map, path_check usable);

  std::string_view name() const override { return paths_.front()->name(); }
  result<std::vector<extent>> allocate(std::span<const uint64_t> sizes) override;
  result<void> adopt(std::span<const extent> extents, std::span<const uint64_t> requested) override;
  void free(std::span<const extent> extents) override;
  uint64_t physical_size(uint64_t bytes) const override { return paths_.front()->physical_size(bytes); }
  uint64_t largest_possible() const override;
  allocator_usage usage() const override; ///< the largest free run is one of a usable path
  uint64_t room_bytes() const override;   ///< on usable paths
  void expect(uint64_t smallest_bytes) override;
  using allocator::grow;
  result<void> grow(uint64_t bytes, uint64_t gap_bytes) override; ///< the last path
  result<void> retire(extent range) override;                     ///< of one path
  uint64_t used_in(extent range) const override;
  std::optional<std::vector<size_t>> choose(std::span<const uint64_t> sizes,
                                            std::span<const extent> candidates) override;

 private:
  using assignment = std::vector<size_t>; ///< for each object of a batch, its path

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
  std::vector<int64_t> turns_; ///< what each path is behind the others; their sum is 0
  remembered chosen_;          ///< how the last choice would place its batch
  uint64_t expected_ = 0;
  uint64_t told_ = 0; ///< to all paths: the smallest object of any
};

} // namespace terrace
