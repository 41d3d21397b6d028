// The free runs of an arena, ordered by address.
#pragma once

#include "memory/allocator.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace terrace {

/// A set of bytes, stored as maximal runs. Runs never cross a multiple of the boundary, even if the bytes on
/// both sides are free: every run can be allocated whole.
///
/// Runs are stored in sorted blocks of at most 64, as in the leaves of a B+ tree (Comer, "The Ubiquitous
/// B-Tree", 1979) whose inner level is one flat array. Each block stores its largest run, so that finding the
/// first run of at least n bytes reads one number per block. `give` and `take` modify one block or two. The
/// same calls build the same blocks. Not thread-safe.
class free_runs {
 public:
  explicit free_runs(uint64_t boundary_bytes = 0) : boundary_(boundary_bytes) {}

  /// Adds bytes, none of which is in the set (asserted where cheap), and merges them with their neighbors.
  void give(extent range);

  /// Removes bytes, all of which are in the set (asserted), anywhere within their runs.
  void take(extent range);

  /// Returns the run with the lowest offset that has at least `bytes`; `bytes` is not 0.
  std::optional<extent> first_fit(uint64_t bytes) const;

  /// Returns the run that contains `offset`.
  std::optional<extent> run_at(uint64_t offset) const;

  /// True if all of `range` is in the set. `range` must not cross a boundary.
  bool contains(extent range) const;

  /// Returns the part of the set within `range`, in order.
  std::vector<extent> within(extent range) const;

  uint64_t largest() const; ///< 0 when the set is empty
  size_t count() const { return count_; }
  uint64_t bytes() const { return bytes_; }

  /// Sets the object size for `whole_units`. O(runs) if it changes.
  void measure_in(uint64_t unit);
  uint64_t unit() const { return unit_; }
  /// The bytes of whole units that fit end to end in each run. O(1).
  uint64_t whole_units() const { return whole_units_; }

 private:
  static constexpr uint32_t block_max = 64;
  struct block {
    uint32_t count = 0;
    std::array<uint64_t, block_max> offsets;
    std::array<uint64_t, block_max> sizes;
  };
  struct place {
    size_t block;
    uint32_t at;
  };

  std::optional<place> last_before(uint64_t offset) const; ///< the last run that begins before `offset`
  std::optional<place> next(std::optional<place> position) const;
  bool ends_run(uint64_t offset) const { return boundary_ != 0 && offset % boundary_ == 0; }
  void give_within_boundary(extent range);
  void insert(std::optional<place> before, extent run);
  void erase(place at);
  void resize(place at, extent run); ///< must not change the order
  void split(size_t full);
  void drop_block(size_t which);
  void measure_block(size_t which);
  void count_in(uint64_t size);
  void count_out(uint64_t size);

  uint64_t boundary_;
  uint64_t unit_ = 1;
  std::vector<std::unique_ptr<block>> blocks_;
  std::vector<uint64_t> first_;   ///< for each block: the offset of its first run
  std::vector<uint64_t> largest_; ///< for each block: the size of its largest run
  size_t count_ = 0;
  uint64_t bytes_ = 0;
  uint64_t whole_units_ = 0;
  mutable uint64_t largest_of_all_ = 0;
  mutable bool largest_known_ = true;
};

} // namespace terrace
