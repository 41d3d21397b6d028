// Memory of a device as an engine has it: the simulated driver's, or that of the device in host memory.
#pragma once

#include "client/types.hpp"
#include "gpu/device.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace terrace::e2e {

/// How an engine passes its memory to the daemon.
enum class device_kind : uint8_t { host, cuda_handle, cuda_descriptor };
std::string to_string(device_kind kind);

/// Throws if there is no such device.
class engine_memory {
 public:
  /// `number`: of the GPU.
  engine_memory(device_kind kind, uint64_t bytes, size_t number = 0);

  /// For `register_device_region`.
  client::device_allocation shared() const;
  uint64_t bytes() const { return memory_->bytes(); }

  void write(std::span<const uint8_t> all);
  std::vector<uint8_t> read();

 private:
  void copy(std::span<uint8_t> host, bool into_device);

  std::string name_;
  std::shared_ptr<gpu::device> device_;
  std::shared_ptr<gpu::memory> memory_;
  gpu::memory_handle handle_;
};

} // namespace terrace::e2e
