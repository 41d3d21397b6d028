#include "memory/free_list_allocator.hpp"

#include "memory/allocator_registry.hpp"

namespace terrace {

result<std::unique_ptr<allocator>> free_list_allocator::make(const allocator_options& options) {
  if (auto valid = validate_arena(options); !valid)
    return tl::unexpected(valid.error());
  return std::unique_ptr<allocator>(new free_list_allocator(options));
}

result<std::vector<extent>> free_list_allocator::allocate(std::span<const uint64_t> sizes) {
  auto total = total_physical(*this, sizes);
  if (!total)
    return tl::unexpected(total.error());
  std::vector<extent> taken;
  if (*total <= space_.free_bytes()) {
    if (take_one_run(sizes, *total, taken))
      return taken;
    if (sizes.size() > 1)
      for (const auto& order : placing_orders(sizes))
        if (take_each(sizes, order, taken))
          return taken;
  }
  return fail_no_space(*this, sizes.size(), *total);
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
    space_.add(taken.back(), bytes, 0);
    offset += taken.back().size;
  }
  return true;
}

bool free_list_allocator::take_each(std::span<const uint64_t> sizes, std::span<const size_t> order,
                                    std::vector<extent>& taken) {
  taken.assign(sizes.size(), {});
  for (size_t i : order) {
    uint64_t physical = physical_size(sizes[i]);
    auto run = space_.runs().first_fit(physical);
    if (!run) { // all or nothing
      std::erase_if(taken, [](const extent& e) { return e.size == 0; });
      free(taken);
      taken.clear();
      return false;
    }
    taken[i] = {run->offset, physical};
    space_.take_run(taken[i]);
    space_.add(taken[i], sizes[i], 0);
  }
  return true;
}

result<void> free_list_allocator::adopt(std::span<const extent> extents,
                                        std::span<const uint64_t> requested) {
  return space_.adopt(extents, requested, 0);
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
