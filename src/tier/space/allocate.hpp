// Allocating and freeing space in a tier's arena.
#pragma once

#include "base/error.hpp"
#include "base/request_context.hpp"
#include "index/tenant_quota.hpp"
#include "memory/allocator.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

/// One extent per size, all or none. Waits (tier/space/allocation_queue.hpp) as long as `may_wait` is set and something
/// other than the end of leases may still make room.
struct allocate_request {
  std::vector<uint64_t> sizes;
  bool may_wait = true;
  context_ptr context;
  tenant_id
      tenant{}; ///< tenant of the objects: its own objects make room for them, too, whatever it is guaranteed
};
struct allocate_answer {
  error failure;
  std::vector<extent> extents;
};
struct free_notice {
  std::vector<extent> extents;
};

/// The arena grew by `bytes`, after an unused gap of `gap_bytes`.
struct grow_notice {
  uint64_t bytes = 0;
  uint64_t gap_bytes = 0;
};

/// Stops allocation in these segments; their objects are evicted as soon as they are not held. The answer
/// comes when they are empty.
struct retire_request {
  extent range;
};
struct retire_answer {
  error failure;
};

} // namespace terrace
