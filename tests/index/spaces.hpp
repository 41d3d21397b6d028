// Specs for tests.
#pragma once

#include "index/space_spec.hpp"

namespace terrace::testing {

/// One pool of 1 MiB, chunks of 64, hash blocks of 16.
inline space_spec small_space() {
  return {.model = "m",
          .dtype = "bfloat16",
          .layout = "KV_2LTD",
          .chunk_tokens = 64,
          .hash_block_tokens = 16,
          .pools = {{.name = "kv", .object_bytes = 1 << 20}}};
}

} // namespace terrace::testing
