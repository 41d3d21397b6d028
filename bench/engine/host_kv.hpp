// Paged KV in shared memory of the host.
#pragma once

#include "bench/engine/paged_kv.hpp"
#include "client/region.hpp"

namespace terrace::bench {

class host_kv final : public paged_kv {
 public:
  host_kv(const model_shape& shape, size_t blocks);

  float* data() const { return reinterpret_cast<float*>(memory_.data()); }
  uint64_t address() const override { return reinterpret_cast<uint64_t>(memory_.data()); }
  void read(uint32_t block, std::span<uint8_t> to) const override;
  void write(uint32_t block, std::span<const uint8_t> from) override;
  client::registered_region register_at(client::connection& daemon) const override;

 private:
  client::region memory_;
};

} // namespace terrace::bench
