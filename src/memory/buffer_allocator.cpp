#include "memory/buffer_allocator.hpp"

#include "memory/allocator_registry.hpp"

namespace terrace {

result<std::unique_ptr<allocator>> buffer_allocator::make(const allocator_options& options) {
  if (auto valid = validate_arena(options); !valid)
    return tl::unexpected(valid.error());
  return std::unique_ptr<allocator>(new buffer_allocator(options));
}

std::optional<extent> buffer_allocator::take_one(uint64_t requested, bool first_fit) {
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

void buffer_allocator::free(std::span<const extent> extents) {
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

void buffer_allocator::runs_changed() {
  by_size_.clear();
  for (const extent& run : space_.runs().within({0, space_.end()}))
    by_size_.emplace(run.size, run.offset);
}

} // namespace terrace
