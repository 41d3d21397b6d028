// The engine's KV: blocks of 16 tokens with all layers, in shared memory, so that a daemon can copy to and from them.
#pragma once

#include "bench/engine/transformer.hpp"
#include "client/region.hpp"

#include <optional>
#include <vector>

namespace terrace::bench {

class paged_kv {
 public:
  /// Ends the program if there is no memory.
  paged_kv(const model_shape& shape, size_t blocks);

  static constexpr size_t blocks_for(size_t tokens) { return (tokens + block_tokens - 1) / block_tokens; }

  size_t block_bytes() const { return block_bytes_; }
  float* data() const { return reinterpret_cast<float*>(memory_.data()); }
  std::span<uint8_t> block(uint32_t number) const {
    return memory_.bytes().subspan(number * block_bytes_, block_bytes_);
  }
  const client::region& memory() const { return memory_; }

  size_t free_blocks() const { return free_.size(); }
  /// Makes the table long enough for so many tokens; false, and nothing, if too few blocks are free.
  bool extend(std::vector<uint32_t>& table, size_t tokens);
  /// Empties the table. What the blocks have stays there for whoever gets them next.
  void release(std::vector<uint32_t>& table);

 private:
  size_t block_bytes_;
  client::region memory_;
  std::vector<uint32_t> free_;
};

} // namespace terrace::bench
