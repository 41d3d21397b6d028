#include "tier/tier_plan.hpp"

#include "index/object_header.hpp"

namespace terrace {

result<std::unique_ptr<allocator>> make_space(const tier_plan& plan, uint64_t bytes,
                                              uint64_t boundary_bytes) {
  return make_allocator(plan.allocator, {.capacity_bytes = bytes,
                                         .alignment_bytes = disk_alignment_bytes,
                                         .boundary_bytes = boundary_bytes,
                                         .slot_bytes = plan.slot_bytes,
                                         .small_max_bytes = plan.small_max_bytes,
                                         .small_percent = plan.small_percent});
}

} // namespace terrace
