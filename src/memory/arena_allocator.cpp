#include "memory/arena_allocator.hpp"

#include "memory/allocator_registry.hpp"

namespace terrace {

result<std::vector<extent>> arena_allocator::allocate(std::span<const uint64_t> sizes) {
  auto total = total_physical(*this, sizes);
  if (!total)
    return tl::unexpected(total.error());
  std::vector<extent> taken;
  if (*total <= space_.free_bytes() && place(sizes, *total, taken))
    return taken;
  return fail_no_space(*this, sizes.size(), *total);
}

bool arena_allocator::place(std::span<const uint64_t> sizes, uint64_t, std::vector<extent>& taken) {
  if (sizes.size() == 1) {
    if (auto one = take_one(sizes[0], false))
      taken.push_back(*one);
    return !taken.empty();
  }
  auto orders = placing_orders(sizes);
  for (const auto& order : orders)
    if (take_each(sizes, order, taken, false))
      return true;
  return take_each(sizes, orders.back(), taken, true);
}

bool arena_allocator::take_each(std::span<const uint64_t> sizes, std::span<const size_t> order,
                                std::vector<extent>& taken, bool first_fit) {
  taken.assign(sizes.size(), {});
  for (size_t i : order) {
    auto one = take_one(sizes[i], first_fit);
    if (!one) { // all or nothing
      std::erase_if(taken, [](const extent& e) { return e.size == 0; });
      free(taken);
      taken.clear();
      return false;
    }
    taken[i] = *one;
  }
  return true;
}

result<void> arena_allocator::adopt(std::span<const extent> extents, std::span<const uint64_t> requested) {
  auto taken = space_.adopt(extents, requested, no_tag);
  if (taken)
    adopted(extents);
  return taken;
}

result<void> arena_allocator::grow(uint64_t bytes, uint64_t gap_bytes) {
  extent added{space_.end() + gap_bytes, bytes};
  auto done = space_.grow(bytes, gap_bytes);
  if (done)
    grown(added);
  return done;
}

result<void> arena_allocator::retire(extent range) {
  auto gone = space_.retire(range);
  if (gone)
    retired(range);
  return gone;
}

result<std::unique_ptr<allocator>> free_list_allocator::make(const allocator_options& options) {
  if (auto valid = validate_arena(options); !valid)
    return tl::unexpected(valid.error());
  return std::unique_ptr<allocator>(new free_list_allocator(options));
}

bool free_list_allocator::place(std::span<const uint64_t> sizes, uint64_t total, std::vector<extent>& taken) {
  if (take_one_run(sizes, total, taken))
    return true;
  return sizes.size() > 1 && arena_allocator::place(sizes, total, taken);
}

bool free_list_allocator::take_one_run(std::span<const uint64_t> sizes, uint64_t total,
                                       std::vector<extent>& taken) {
  if (total == 0)
    return true;
  auto run = space_.runs().first_fit(total);
  if (!run)
    return false;
  space_.take_run({run->offset, total});
  taken.reserve(sizes.size());
  uint64_t offset = run->offset;
  for (uint64_t bytes : sizes) {
    taken.push_back({offset, physical_size(bytes)});
    space_.add(taken.back(), bytes, no_tag);
    offset += taken.back().size;
  }
  return true;
}

std::optional<extent> free_list_allocator::take_one(uint64_t requested, bool) {
  auto run = space_.runs().first_fit(physical_size(requested));
  if (!run)
    return std::nullopt;
  extent made{run->offset, physical_size(requested)};
  space_.take_run(made);
  space_.add(made, requested, no_tag);
  return made;
}

void free_list_allocator::free(std::span<const extent> extents) {
  extent joined;
  auto give = [&](const extent& e) {
    space_.remove(e);
    if (joined.size > 0 && joined.offset + joined.size == e.offset) {
      joined.size += e.size;
    } else {
      if (joined.size > 0)
        space_.give_run(joined);
      joined = e;
    }
  };
  if (extents.size() < 2) {
    for (const extent& e : extents)
      give(e);
  } else {
    for (const extent& e : by_offset(extents))
      give(e);
  }
  if (joined.size > 0)
    space_.give_run(joined);
}

} // namespace terrace
