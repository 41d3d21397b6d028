// Specs for tests.
#pragma once

#include "index/space_spec.hpp"

namespace terrace::test {

/// One pool of 1 MiB, chunks of 64, hash blocks of 16.
inline space_spec small_space() {
  return {.model = "m",
          .dtype = "bfloat16",
          .layout = "KV_2LTD",
          .chunk_tokens = 64,
          .hash_block_tokens = 16,
          .pools = {{.name = "kv", .object_bytes = 1 << 20}}};
}

/// Two ranks; a pool of attention, a replicated one, and a trailing one: five objects per chunk.
inline space_spec mixed_space() {
  auto spec = small_space();
  spec.world_size = 2;
  spec.pools = {{.name = "kv", .object_bytes = 1000},
                {.name = "shared", .object_bytes = 500, .replicated = true},
                {.name = "state", .object_bytes = 200, .rule = hit_rule::trailing_chunks}};
  return spec;
}

} // namespace terrace::test
