// The kernels of the reference engine. They are launched by name, so their names are not mangled.
#include "bench/engine/device/steps.hpp"

#define TERRACE_ENGINE_KERNEL(step)                                                                          \
  extern "C" __global__ void terrace_engine_##step(                                                          \
      const __grid_constant__ terrace::bench::step##_step what, const uint64_t outputs) {                    \
    const uint64_t threads = static_cast<uint64_t>(gridDim.x) * blockDim.x;                                  \
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < outputs; i += threads) \
      what.at(i);                                                                                            \
  }

TERRACE_ENGINE_STEPS(TERRACE_ENGINE_KERNEL)
