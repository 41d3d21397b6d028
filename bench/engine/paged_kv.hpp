// The engine's KV: blocks of 16 tokens with all layers, in memory that a daemon can copy to and from.
#pragma once

#include "bench/engine/model.hpp"

#include <vector>

namespace terrace::client {
class connection;
class registered_region;
} // namespace terrace::client

namespace terrace::bench {

class paged_kv {
 public:
  paged_kv(const model_shape& shape, size_t blocks);
  virtual ~paged_kv() = default;
  paged_kv(const paged_kv&) = delete;
  paged_kv& operator=(const paged_kv&) = delete;

  static constexpr size_t blocks_for(size_t tokens) { return (tokens + block_tokens - 1) / block_tokens; }

  size_t block_bytes() const { return block_bytes_; }
  uint64_t bytes() const { return blocks_ * block_bytes_; }
  /// Address of the first block, where the model computes.
  virtual uint64_t address() const = 0;
  virtual void read(uint32_t block, std::span<uint8_t> to) const = 0;
  virtual void write(uint32_t block, std::span<const uint8_t> from) = 0;
  /// The program ends if the daemon refuses it.
  virtual client::registered_region register_at(client::connection& daemon) const = 0;

  size_t free_blocks() const { return free_.size(); }
  /// Makes the table long enough for this many tokens. If too few blocks are free, returns false and changes
  /// nothing.
  bool extend(std::vector<uint32_t>& table, size_t tokens);
  /// Empties the table. The contents of the blocks stay until somebody else uses them.
  void release(std::vector<uint32_t>& table);

 private:
  size_t block_bytes_;
  size_t blocks_;
  std::vector<uint32_t> free_;
};

} // namespace terrace::bench
