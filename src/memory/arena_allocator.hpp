// The common base of allocators for variable sizes: everything except the choice of place.
#pragma once

#include "memory/allocator.hpp"
#include "memory/free_runs.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace terrace {

// The free and allocated bytes of an arena and their accounting, shared by the allocators for variable sizes.

// The live extents of an arena, by offset.

/// A hash table with open addressing and linear probing (Knuth, volume 3, algorithms 6.4 L and R: removal
/// moves entries back and leaves no tombstones). A live extent costs 32 to 64 bytes and no separate
/// allocation. Not thread-safe.
class live_extents {
 public:
  struct entry {
    uint64_t offset = empty;
    uint64_t requested = 0; ///< determines the physical size
    uint32_t tag = 0;       ///< for the allocator's own use
  };

  /// The offset must not be in the table.
  void insert(const entry& added) {
    reserve(1);
    place(added);
    ++count_;
  }

  /// nullptr if there is none. Valid until the next insert or remove.
  const entry* find(uint64_t offset) const {
    if (entries_.empty())
      return nullptr;
    for (size_t at = home(offset); entries_[at].offset != empty; at = (at + 1) & mask())
      if (entries_[at].offset == offset)
        return &entries_[at];
    return nullptr;
  }
  entry* find(uint64_t offset) { return const_cast<entry*>(std::as_const(*this).find(offset)); }

  /// Removes an entry returned by `find`.
  entry remove(entry* found) {
    entry removed = *found;
    size_t hole = static_cast<size_t>(found - entries_.data());
    for (size_t at = (hole + 1) & mask(); entries_[at].offset != empty; at = (at + 1) & mask()) {
      size_t from_home = (at - home(entries_[at].offset)) & mask();
      if (from_home >= ((at - hole) & mask())) {
        entries_[hole] = entries_[at];
        hole = at;
      }
    }
    entries_[hole].offset = empty;
    --count_;
    return removed;
  }

  /// Makes room for `more` entries at once.
  void reserve(size_t more) {
    if (size_t room = (count_ + more) * 4 / 3 + 1; room > entries_.size())
      grow(std::bit_ceil(std::max(size_t{64}, room)));
  }

  /// Starts to load the slot of `offset` into the cache, for a caller with other work to do first.
  void prefetch(uint64_t offset) const {
    if (!entries_.empty())
      __builtin_prefetch(&entries_[home(offset)], 1);
  }

  size_t size() const { return count_; }

 private:
  static constexpr uint64_t empty = ~uint64_t{0};
  static constexpr uint64_t golden = 0x9e3779b97f4a7c15ULL;

  size_t mask() const { return entries_.size() - 1; }
  /// Multiplicative hashing (Knuth, 6.4).
  size_t home(uint64_t offset) const { return offset * golden >> shift_; }
  void place(const entry& added) {
    size_t at = home(added.offset);
    while (entries_[at].offset != empty) {
      assert(entries_[at].offset != added.offset && "live already");
      at = (at + 1) & mask();
    }
    entries_[at] = added;
  }
  void grow(size_t size) {
    std::vector<entry> before(size);
    before.swap(entries_);
    shift_ = 64 - std::countr_zero(entries_.size());
    for (const entry& e : before)
      if (e.offset != empty)
        place(e);
  }

  std::vector<entry> entries_; ///< size is a power of two, at most three quarters in use
  size_t count_ = 0;
  int shift_ = 0;
};

/// Keeps track of the free bytes; its allocator decides where an object is placed. All values that it reports
/// depend on the live extents alone, not on the sequence of calls that led to them.
class extent_map {
 public:
  explicit extent_map(const allocator_options& options);

  uint64_t physical_size(uint64_t bytes) const {
    return (bytes + options_.alignment_bytes - 1) & ~(options_.alignment_bytes - 1);
  }
  uint64_t largest_possible() const { return usable_.largest(); }
  uint64_t free_bytes() const { return runs_.bytes(); }
  uint64_t end() const { return end_; } ///< end of the address space
  const free_runs& runs() const { return runs_; }

  /// Allocates free bytes as one extent, or as several adjacent ones (`take_run`, then `add` for each).
  void take_run(extent run) {
    live_.prefetch(run.offset);
    runs_.take(run);
  }
  void add(extent made, uint64_t requested, uint32_t tag);

  /// Allocates given places, all or none. Errors: `bad_request` for the first that is not free or has the
  /// wrong size.
  result<void> adopt(std::span<const extent> extents, std::span<const uint64_t> requested, uint32_t tag);

  /// The two halves of freeing an extent, in any order: its bytes, alone or merged with others, and its
  /// entry. Both assert that the extent is live.
  void give_run(extent run);
  live_extents::entry remove(const extent& e);

  /// Lets an allocator change the tag of a live extent.
  live_extents::entry* find(uint64_t offset) { return live_.find(offset); }
  /// See `allocator::live_size`.
  uint64_t live_size(uint64_t offset) const {
    const auto* found = live_.find(offset);
    return found == nullptr ? 0 : physical_size(found->requested);
  }

  allocator_usage usage() const;
  void expect(uint64_t smallest_bytes);
  result<void> grow(uint64_t bytes, uint64_t gap_bytes);
  result<void> retire(extent range);
  uint64_t used_in(extent range) const;
  /// The parts of `run` that are not retired.
  std::vector<extent> usable(extent run) const { return usable_.within(run); }
  bool any_retired() const { return !retired_.empty(); }
  std::optional<std::vector<size_t>> choose(std::span<const uint64_t> sizes,
                                            std::span<const extent> candidates);

 private:
  struct retired {
    extent range;
    uint64_t used = 0;
  };

  /// Returns the places that first fit, largest first, would choose; empty if it finds no room.
  std::vector<extent> trial(std::span<const uint64_t> sorted_sizes);

  allocator_options options_;
  free_runs runs_;
  free_runs usable_; ///< everything not retired, allocated or not
  live_extents live_;
  std::vector<retired> retired_;
  uint64_t end_ = 0;
  uint64_t used_bytes_ = 0;
  uint64_t requested_bytes_ = 0;
  uint64_t smallest_ = 0;
  uint64_t expected_ = 0; ///< the value of `smallest_` while nothing is live
};

/// Uses an `extent_map` for the accounting. A batch is all or nothing: its objects are placed one by one in order, then
/// largest first, then largest first by plain first fit. If `choose` finds room by that last rule, `allocate` succeeds.
class arena_allocator : public allocator {
 public:
  result<std::vector<extent>> allocate(std::span<const uint64_t> sizes) override;
  result<void> adopt(std::span<const extent> extents, std::span<const uint64_t> requested) final;
  uint64_t physical_size(uint64_t bytes) const override { return space_.physical_size(bytes); }
  uint64_t largest_possible() const override { return space_.largest_possible(); }
  allocator_usage usage() const override { return space_.usage(); }
  void expect(uint64_t smallest_bytes) override { space_.expect(smallest_bytes); }
  using allocator::grow;
  result<void> grow(uint64_t bytes, uint64_t gap_bytes) final;
  result<void> retire(extent range) final;
  uint64_t used_in(extent range) const override { return space_.used_in(range); }
  uint64_t live_size(uint64_t offset) const override { return space_.live_size(offset); }
  std::optional<std::vector<size_t>> choose(std::span<const uint64_t> sizes,
                                            std::span<const extent> candidates) override {
    return space_.choose(sizes, candidates);
  }

 protected:
  explicit arena_allocator(const allocator_options& options) : space_(options) {}

  /// Places all objects, or none and returns false. `total` physical bytes are free, but not necessarily in
  /// runs that fit.
  virtual bool place(std::span<const uint64_t> sizes, uint64_t total, std::vector<extent>& taken);

  /// Places one object. With `first_fit`, it goes wherever first fit finds room, so that everything that fits
  /// is placed.
  virtual std::optional<extent> take_one(uint64_t requested, bool first_fit) = 0;

  bool take_each(std::span<const uint64_t> sizes, std::span<const size_t> order, std::vector<extent>& taken,
                 bool first_fit);

  /// Hooks for allocators with state of their own: they are told which places were taken, which bytes were
  /// added, and which were retired.
  virtual void adopted(std::span<const extent>) { runs_changed(); }
  virtual void grown(extent) { runs_changed(); }
  virtual void retired(extent) { runs_changed(); }
  virtual void runs_changed() {}

  static constexpr uint32_t no_tag = ~uint32_t{0};
  extent_map space_;
};

// Address-ordered first fit for objects of any size; objects of a batch stay adjacent.

/// A batch is first tried as one run cut into consecutive parts (the objects of a chunk are then adjacent:
/// one I/O), then as several runs with each size placed first fit in batch order, then again largest first.
/// With equal sizes a batch fails only if the arena cannot hold it; with mixed sizes no further packing is
/// searched. Parts are freed singly or together; a freed batch is merged first, so that the free runs are
/// updated once per merged run. A free run ends at a boundary even if the bytes after it are free:
/// `largest_free_run` is the largest possible request. Costs: see `free_runs`.
class free_list_allocator : public arena_allocator {
 public:
  static result<std::unique_ptr<allocator>> make(const allocator_options& options);

  std::string_view name() const override { return "free_list"; }
  void free(std::span<const extent> extents) override;

 private:
  explicit free_list_allocator(const allocator_options& options) : arena_allocator(options) {}

  bool place(std::span<const uint64_t> sizes, uint64_t total, std::vector<extent>& taken) override;
  bool take_one_run(std::span<const uint64_t> sizes, uint64_t total, std::vector<extent>& taken);
  std::optional<extent> take_one(uint64_t requested, bool first_fit) override;
};

} // namespace terrace
