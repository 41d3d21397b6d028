// The prompt that takes longest to hash.
#pragma once

#include "workload.hpp"

namespace terrace::e2e {

inline client::space_spec small_blocks() {
  auto spec = test_space();
  spec.chunk_tokens = 32;
  spec.hash_block_tokens = 1;
  return spec;
}

/// Hashing it takes seconds: the hash is called for each token, with a LoRA name and an item.
struct expensive_prompt {
  std::vector<uint32_t> tokens = std::vector<uint32_t>(2'097'152);
  std::string name = std::string(256, 'l');
  std::vector<client::item> items{{.identifier = name, .first_token = 0, .tokens = 2'097'152}};

  client::prefix prefix() const {
    auto made = client::prefix::of_tokens(tokens);
    made.lora = name;
    made.items = items;
    return made;
  }
};

} // namespace terrace::e2e
