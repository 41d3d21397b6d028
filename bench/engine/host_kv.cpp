#include "bench/engine/host_kv.hpp"

#include "bench/harness.hpp"
#include "client/client.hpp"

#include <cstring>

namespace terrace::bench {

host_kv::host_kv(const model_shape& shape, size_t blocks)
    : paged_kv(shape, blocks),
      memory_(must(client::region::create("reference-engine", bytes()), "making a region")) {}

void host_kv::read(uint32_t block, std::span<uint8_t> to) const {
  std::memcpy(to.data(), memory_.data() + block * block_bytes(), block_bytes());
}

void host_kv::write(uint32_t block, std::span<const uint8_t> from) {
  std::memcpy(memory_.data() + block * block_bytes(), from.data(), block_bytes());
}

client::registered_region host_kv::register_at(client::connection& daemon) const {
  return must(daemon.register_region(memory_), "registering a region");
}

} // namespace terrace::bench
