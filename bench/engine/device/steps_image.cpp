#include "bench/engine/device/steps_image.hpp"

#ifdef TERRACE_CUDA_KERNELS
#include "steps_image.inc"
#endif

namespace terrace::bench {

std::span<const std::byte> steps_image() {
#ifdef TERRACE_CUDA_KERNELS
  return std::as_bytes(std::span(engine_steps_image));
#else
  return {};
#endif
}

} // namespace terrace::bench
