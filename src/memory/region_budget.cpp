#include "memory/region_budget.hpp"

#include <cassert>

namespace terrace {

region_charge::~region_charge() {
  for (region_budget* each = from_.get(); each != nullptr; each = each->above_.get())
    each->give_back(bytes_);
}

region_budget_ptr region_budget::make(bound most, region_budget_ptr above) {
  return region_budget_ptr(new region_budget(std::move(most), std::move(above)));
}

result<region_charge> region_budget::take(uint64_t bytes) {
  for (const region_budget* each = this; each != nullptr; each = each->above_.get())
    if (auto may = each->may_ever_take(bytes); !may)
      return tl::unexpected(may.error());
  for (region_budget* each = this; each != nullptr; each = each->above_.get())
    if (auto taken = each->take_here(bytes); !taken) {
      for (region_budget* below = this; below != each; below = below->above_.get())
        below->give_back(bytes);
      return tl::unexpected(taken.error());
    }
  return region_charge(shared_from_this(), bytes);
}

result<void> region_budget::may_ever_take(uint64_t bytes) const {
  if (bytes <= most_.bytes_max)
    return {};
  return fail(errc::bad_request, "a region of " + std::to_string(bytes) + " bytes: " + most_.owner +
                                     " may have " + std::to_string(most_.bytes_max) +
                                     " in all; register less");
}

result<void> region_budget::take_here(uint64_t bytes) {
  uint64_t used = bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > most_.bytes_max - used)
      return fail(errc::busy, most_.owner + " has regions of " + std::to_string(used) + " bytes; " +
                                  std::to_string(bytes) + " more would exceed its bound of " +
                                  std::to_string(most_.bytes_max) + "; unregister some");
  } while (!bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  assert(used + bytes <= most_.bytes_max);
  uint32_t count = regions_.fetch_add(1, std::memory_order_relaxed);
  if (count < most_.regions_max)
    return {};
  give_back(bytes);
  return fail(errc::busy, most_.owner + " has " + std::to_string(count) +
                              " regions, as many as it maps at a time; unregister some");
}

void region_budget::give_back(uint64_t bytes) {
  [[maybe_unused]] uint64_t used = bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  assert(used >= bytes);
  regions_.fetch_sub(1, std::memory_order_relaxed);
}

} // namespace terrace
