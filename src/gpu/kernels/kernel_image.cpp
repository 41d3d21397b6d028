#include "gpu/kernels/kernel_image.hpp"

#ifdef TERRACE_CUDA_KERNELS
#include "copy_runs_image.inc"
#endif

namespace terrace::gpu {

std::span<const std::byte> kernel_image() {
#ifdef TERRACE_CUDA_KERNELS
  return std::as_bytes(std::span(copy_runs_image));
#else
  return {};
#endif
}

} // namespace terrace::gpu
