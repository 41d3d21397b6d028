// Accesses in the form in which shadow policies are told of them.
#pragma once

#include "index/object_header.hpp"
#include "tests/index/spaces.hpp"
#include "tier/policy/policy_messages.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace terrace::test {

/// The bytes that an object of the space takes in an arena.
inline constexpr uint64_t object = physical_bytes_for(1 << 20);

inline space_ptr space(std::vector<pool_spec> pools = {{.name = "kv", .object_bytes = 1 << 20}},
                       uint32_t ranks = 1, uint32_t id = 1) {
  auto spec = small_space();
  spec.pools = std::move(pools);
  spec.world_size = ranks;
  return std::make_shared<const opened_space>(opened_space{space_id{id}, spec, {}});
}

inline digest chunk(uint8_t n) {
  digest made;
  made.bytes.fill(n);
  return made;
}

inline shadow_use use_of(const space_ptr& in, std::initializer_list<int> chunks, uint64_t inference = 0) {
  auto prefix = std::make_shared<chunk_prefix>();
  for (int n : chunks)
    prefix->chunks.push_back(chunk(static_cast<uint8_t>(n)));
  return {in, prefix, {}, inference, {}, {}};
}

} // namespace terrace::test
