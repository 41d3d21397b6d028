// The copy kernel, with a row of blocks for each run of the batch. The driver launches it by name, so its
// name is not mangled.
#include "gpu/kernels/copy_runs.hpp"

namespace {

struct move_unit {
  __device__ void operator()(uint64_t destination, uint64_t source, uint32_t bytes) const {
    switch (bytes) {
    case 16: *reinterpret_cast<uint4*>(destination) = *reinterpret_cast<const uint4*>(source); break;
    case 8: *reinterpret_cast<uint2*>(destination) = *reinterpret_cast<const uint2*>(source); break;
    case 4: *reinterpret_cast<uint32_t*>(destination) = *reinterpret_cast<const uint32_t*>(source); break;
    case 2: *reinterpret_cast<uint16_t*>(destination) = *reinterpret_cast<const uint16_t*>(source); break;
    default: *reinterpret_cast<uint8_t*>(destination) = *reinterpret_cast<const uint8_t*>(source); break;
    }
  }
};

} // namespace

extern "C" __global__ void terrace_copy_runs(const __grid_constant__ terrace::gpu::copy_batch batch) {
  const uint64_t threads = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  const uint64_t thread = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (uint32_t i = blockIdx.y; i < batch.runs; i += gridDim.y)
    terrace::gpu::copy_share(batch.run[i], thread, threads, move_unit{});
}
