// Paged KV in GPU memory, which the daemon accesses through a handle.
#pragma once

#include "bench/engine/device/device_memory.hpp"
#include "bench/engine/paged_kv.hpp"

#include <string>

namespace terrace::bench {

class device_kv final : public paged_kv {
 public:
  /// `uuid`: UUID of the link's device, as nvidia-smi writes it.
  device_kv(std::shared_ptr<device_link> link, std::string uuid, const model_shape& shape, size_t blocks);

  uint64_t address() const override { return memory_.get().address; }
  void read(uint32_t block, std::span<uint8_t> to) const override;
  void write(uint32_t block, std::span<const uint8_t> from) override;
  client::registered_region register_at(client::connection& daemon) const override;

 private:
  uint64_t address_of(uint32_t block) const { return address() + block * block_bytes(); }

  std::shared_ptr<device_link> link_;
  std::string uuid_;
  cuda::allocation memory_;
};

} // namespace terrace::bench
