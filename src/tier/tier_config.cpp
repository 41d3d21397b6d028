#include "tier/tier_config.hpp"

#include "index/object_header.hpp"

namespace terrace {

result<std::unique_ptr<allocator>> make_space(const tier_config& config, uint64_t bytes,
                                              uint64_t boundary_bytes) {
  return make_allocator(config.allocator, {.capacity_bytes = bytes,
                                           .alignment_bytes = disk_alignment_bytes,
                                           .boundary_bytes = boundary_bytes,
                                           .slot_bytes = config.slot_bytes,
                                           .small_max_bytes = config.small_max_bytes,
                                           .small_percent = config.small_percent});
}

} // namespace terrace
