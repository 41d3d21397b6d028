// The configuration of a tier.
#pragma once

#include "memory/allocator.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace terrace {

struct tier_plan {
  uint64_t bytes = 0;
  std::string allocator = "size_class";
  uint64_t slot_bytes = 0;
  uint64_t small_max_bytes = 64 << 10;
  uint32_t small_percent = 5;
  std::string policy = "kmg";
  uint64_t free_ahead_bytes = 0;
  uint32_t waiting_max = 4096;
  bool staging_only = false; ///< the tier keeps only objects that are held
};

/// Makes the tier's allocator for an arena of this size; `boundary_bytes`: see `allocator_options`. Errors:
/// the allocator's.
result<std::unique_ptr<allocator>> make_space(const tier_plan& plan, uint64_t bytes, uint64_t boundary_bytes);

} // namespace terrace
