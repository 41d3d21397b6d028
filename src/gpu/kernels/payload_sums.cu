// The checksum kernel, with a block of 32 threads for each payload. The driver launches it by name, so its
// name is not mangled.
#include "gpu/kernels/payload_sums.hpp"

namespace {

namespace xxh3 = terrace::gpu::xxh3;
using terrace::gpu::sum_thread;

struct read_word {
  __device__ uint64_t operator()(uint64_t address) const { return *reinterpret_cast<const uint64_t*>(address); }
};

/// The last stripe may begin at any address.
struct read_bytes {
  __device__ uint64_t operator()(uint64_t address) const {
    uint64_t value = 0;
    for (uint32_t i = 0; i < 8; ++i)
      value |= static_cast<uint64_t>(*reinterpret_cast<const uint8_t*>(address + i)) << (8 * i);
    return value;
  }
};

/// Returns the sum over the threads that have the same lane, in each of them.
__device__ uint64_t of_lane(uint64_t share) {
  for (unsigned distance = sum_thread::lanes; distance < sum_thread::count; distance *= 2)
    share += __shfl_xor_sync(~0u, share, distance);
  return share;
}

/// This many blocks are read at once, because reading takes longer than computing.
constexpr uint64_t blocks_at_once = 8;

} // namespace

extern "C" __global__ void terrace_payload_sums(const __grid_constant__ terrace::gpu::sum_batch batch) {
  const auto payload = batch.payload[blockIdx.x];
  const sum_thread thread(threadIdx.x);
  uint64_t lane = thread.begin();
  const uint64_t blocks = terrace::gpu::scrambled_blocks(payload.bytes);
  uint64_t block = 0;
  for (; block + blocks_at_once <= blocks; block += blocks_at_once) {
    uint64_t shares[blocks_at_once];
#pragma unroll
    for (uint64_t i = 0; i < blocks_at_once; ++i)
      shares[i] = thread.share(payload.address + (block + i) * xxh3::block_bytes, xxh3::stripes_per_block, read_word{});
#pragma unroll
    for (uint64_t i = 0; i < blocks_at_once; ++i)
      lane = thread.scramble(lane + of_lane(shares[i]));
  }
  for (; block < blocks; ++block)
    lane = thread.scramble(lane + of_lane(thread.share(payload.address + block * xxh3::block_bytes,
                                                       xxh3::stripes_per_block, read_word{})));
  lane += of_lane(thread.share(payload.address + blocks * xxh3::block_bytes,
                               terrace::gpu::stripes_behind(payload.bytes), read_word{}) +
                  thread.last_share(payload.address + payload.bytes - xxh3::stripe_bytes, read_bytes{}));
  uint64_t lanes[sum_thread::lanes];
#pragma unroll
  for (uint32_t i = 0; i < sum_thread::lanes; ++i)
    lanes[i] = __shfl_sync(~0u, lane, i);
  if (threadIdx.x == 0)
    reinterpret_cast<uint64_t*>(batch.sums)[blockIdx.x] = xxh3::merged(lanes, payload.bytes);
}
