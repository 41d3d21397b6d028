// Places objects of equal size together, for arenas shared by several models, pools or ranks.
#pragma once

#include "memory/arena_allocator.hpp"

#include <map>
#include <unordered_map>

namespace terrace {

/// Every physical size is a class, so nothing is rounded up beyond the alignment. A class with enough live
/// objects allocates slabs of up to 64 adjacent slots and fills the free slot with the lowest address. So
/// holes have sizes that are requested again, and space outside slabs stays in long runs. A slab has at most
/// a quarter as many slots as its class has objects, so a small arena is divided as by first fit, with at
/// most that share set aside. An empty slab becomes ordinary free space immediately. The slabs follow
/// Bonwick, "The Slab Allocator" (1994), without its fixed caches.
///
/// A slab is a preference, not a partition: a request that nothing else can satisfy takes a run of free bytes
/// wherever first fit finds one, and the slabs it cuts are dissolved with their objects in place. So
/// everything that would fit in a free list fits here. The parts of a batch are adjacent in a fresh slab.
/// Deterministic. Costs: see `free_runs`; most calls need no search for a run.
class size_class_allocator : public arena_allocator {
 public:
  static result<std::unique_ptr<allocator>> make(const allocator_options& options);

  std::string_view name() const override { return "size_class"; }
  void free(std::span<const extent> extents) override;

 private:
  using slab_id = uint32_t;
  static constexpr slab_id no_slab = no_tag;

  struct size_class {
    uint64_t live = 0;
    std::vector<std::pair<uint64_t, slab_id>> open; ///< slabs with a free slot, by offset, the lowest last
  };
  struct slab {
    uint64_t offset = 0;
    uint64_t slot_bytes = 0;
    uint64_t free_slots = 0; ///< one bit per slot
    size_class* group = nullptr;
    uint32_t slots = 0;
    uint64_t all() const { return slots == 64 ? ~uint64_t{0} : (uint64_t{1} << slots) - 1; }
    extent range() const { return {offset, slot_bytes * slots}; }
  };

  explicit size_class_allocator(const allocator_options& options);

  /// `first_fit` allows it to cut slabs.
  std::optional<extent> take_one(uint64_t requested, bool first_fit) override;
  void adopted(std::span<const extent> extents) override;
  void grown(extent added) override;
  void retired(extent range) override;
  bool open_slab(size_class& group, uint64_t slot_bytes);
  void dissolve_slabs_in(extent range);
  void forget_slab(slab_id which);
  static void open(const slab& s, slab_id id);
  static void close(const slab& s);

  free_runs loose_; ///< free and in no slab
  std::vector<slab> slabs_;
  std::vector<slab_id> spare_;
  std::map<uint64_t, slab_id> slab_at_;              ///< by offset
  std::unordered_map<uint64_t, size_class> classes_; ///< by physical size; addresses are stable
};

} // namespace terrace
