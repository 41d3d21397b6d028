// Builders of keys, batches and requests for the tests of this room.
#pragma once

#include "base/object_key.hpp"
#include "base/request_context.hpp"
#include "tier/objects/object_batch.hpp"

#include <cstring>

namespace terrace::test {

inline object_key key_of(uint64_t number) {
  object_key made{space_id{1}, 0, 0, {}};
  std::memcpy(made.chunk.bytes.data(), &number, sizeof number);
  return made;
}

/// Makes objects `first`, `first + 1`, ...: a chain, in which the parent of each is the one before it.
inline batch_ptr chain(uint64_t first, size_t count, uint64_t payload_bytes = 4096) {
  auto batch = std::make_shared<object_batch>();
  for (uint64_t n = first; n < first + count; ++n) {
    batch->keys.push_back(key_of(n));
    batch->parents.push_back(n == 0 ? entry_key{} : to_entry_key(key_of(n - 1)));
    batch->payload_bytes.push_back(payload_bytes);
  }
  return batch;
}

inline context_ptr context() { return std::make_shared<request_context>(); }

inline context_ptr ended(errc why) {
  auto made = context();
  made->ended = why;
  return made;
}

} // namespace terrace::test
