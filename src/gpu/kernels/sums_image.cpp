#include "gpu/kernels/kernel_image.hpp"

#ifdef TERRACE_CUDA_KERNELS
#include "payload_sums_image.inc"
#endif

namespace terrace::gpu {

std::span<const std::byte> sums_image() {
#ifdef TERRACE_CUDA_KERNELS
  return std::as_bytes(std::span(payload_sums_image));
#else
  return {};
#endif
}

} // namespace terrace::gpu
