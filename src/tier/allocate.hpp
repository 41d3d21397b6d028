// Space in a tier's arena: asked for, and given back.
#pragma once

#include "base/error.hpp"
#include "memory/allocator.hpp"
#include "tier/request_context.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

/// One extent for each size: all or none. Waits in arrival order while `may_wait` and eviction may still make
/// room. Without `may_evict` it takes what is free, and lets those behind it pass while it waits.
struct allocate_request {
  std::vector<uint64_t> sizes;
  bool may_wait = true;
  context_ptr context;
  bool may_evict = true;
};
struct allocate_answer {
  error failure;
  std::vector<extent> extents;
};
struct free_notice {
  std::vector<extent> extents;
};

/// The arena is larger by `bytes`, behind `gap_bytes` of nothing.
struct grow_notice {
  uint64_t bytes = 0;
  uint64_t gap_bytes = 0;
};

/// Nothing new is put into these segments, and what lies there leaves as soon as nobody holds it. Answered when nothing does.
struct retire_request {
  extent range;
};
struct retire_answer {
  error failure;
};

} // namespace terrace
