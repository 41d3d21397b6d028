// The common base of allocators for variable sizes: everything except the choice of place.
#pragma once

#include "memory/extent_map.hpp"

namespace terrace {

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
