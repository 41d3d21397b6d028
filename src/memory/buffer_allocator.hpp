// A best-fit heap with a capacity limit, for small values of many sizes.
#pragma once

#include "memory/allocator_registry.hpp"
#include "memory/arena_allocator.hpp"

#include <set>
#include <utility>

namespace terrace {

/// Best fit: a value is placed in the smallest free run that holds it, and among equally small runs in the
/// one with the lowest address (Knuth, volume 1, section 2.5). Values of any size fill each other's holes and
/// long runs stay whole; the values of one request are not kept together. `capacity_bytes` is the limit.
/// Besides the cost of `free_runs`, each call searches a tree of runs by size.
class buffer_allocator : public arena_allocator {
 public:
  static result<std::unique_ptr<allocator>> make(const allocator_options& options);

  std::string_view name() const override { return "buffer"; }
  void free(std::span<const extent> extents) override;

 private:
  explicit buffer_allocator(const allocator_options& options) : arena_allocator(options) { runs_changed(); }

  std::optional<extent> take_one(uint64_t requested, bool first_fit) override;
  void runs_changed() override;

  std::set<std::pair<uint64_t, uint64_t>> by_size_; ///< size and offset of each free run
};

inline result<std::unique_ptr<allocator>> buffer_allocator::make(const allocator_options& options) {
  if (auto valid = validate_arena(options); !valid)
    return tl::unexpected(valid.error());
  return std::unique_ptr<allocator>(new buffer_allocator(options));
}

inline std::optional<extent> buffer_allocator::take_one(uint64_t requested, bool first_fit) {
  extent made{0, physical_size(requested)};
  auto best = by_size_.lower_bound({made.size, 0});
  if (best == by_size_.end())
    return std::nullopt;
  if (first_fit) {
    auto first = space_.runs().first_fit(made.size);
    best = by_size_.find({first->size, first->offset});
  }
  auto [run_bytes, offset] = *best;
  by_size_.erase(best);
  made.offset = offset;
  if (run_bytes > made.size)
    by_size_.emplace(run_bytes - made.size, offset + made.size);
  space_.take_run(made);
  space_.add(made, requested, no_tag);
  return made;
}

inline void buffer_allocator::free(std::span<const extent> extents) {
  for (const extent& e : extents) {
    space_.remove(e);
    space_.give_run(e);
    for (const extent& part : space_.usable(e)) { // runs that were joined are one run now
      extent run = *space_.runs().run_at(part.offset);
      by_size_.erase({part.offset - run.offset, run.offset});
      by_size_.erase({run.offset + run.size - part.offset - part.size, part.offset + part.size});
      by_size_.emplace(run.size, run.offset);
    }
  }
}

inline void buffer_allocator::runs_changed() {
  by_size_.clear();
  for (const extent& run : space_.runs().within({0, space_.end()}))
    by_size_.emplace(run.size, run.offset);
}

} // namespace terrace
