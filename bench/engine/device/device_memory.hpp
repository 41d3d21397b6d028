// Memory of a device, and transfers to and from it, for the reference engine.
#pragma once

#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/stream.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace terrace::bench {

/// A stream, and pinned pages through which bytes pass. Used by one thread. The program ends if the device
/// refuses an operation.
class device_link {
 public:
  explicit device_link(std::shared_ptr<const cuda::context> on);
  ~device_link();
  device_link(const device_link&) = delete;
  device_link& operator=(const device_link&) = delete;

  const std::shared_ptr<const cuda::context>& context() const { return context_; }
  const cuda::stream& stream() const { return stream_; }
  cuda::allocation allocate(uint64_t bytes) const;

  /// Both functions wait until the copy is done.
  void write(cuda::device_pointer to, std::span<const std::byte> from);
  void read(std::span<std::byte> to, cuda::device_pointer from);

 private:
  static constexpr uint64_t pinned_bytes = 4 << 20;
  void copy(cuda::device_pointer to, cuda::device_pointer from, uint64_t bytes);

  std::shared_ptr<const cuda::context> context_;
  cuda::stream stream_;
  std::span<std::byte> pages_;
  cuda::registration pinned_;
};

} // namespace terrace::bench
