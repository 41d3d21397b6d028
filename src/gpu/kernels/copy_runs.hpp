// The arithmetic of the copy kernel, written once: nvcc compiles it for the device (copy_runs.cu), and the
// host device and the simulated driver of the tests compile it for the host. Pure: it computes addresses, and
// `move` accesses them.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define TERRACE_HOST_DEVICE __host__ __device__
#else
#define TERRACE_HOST_DEVICE
#endif

namespace terrace::gpu {

/// `count` pieces of `bytes` each; the i-th is copied from `source + i * source_stride` to `destination + i *
/// destination_stride`.
struct copy_run {
  uint64_t destination = 0;
  uint64_t source = 0;
  uint64_t bytes = 0;
  uint64_t destination_stride = 0;
  uint64_t source_stride = 0;
  uint64_t count = 1;
};

/// The parameters of a launch, by value: at most 4,096 bytes.
struct copy_batch {
  static constexpr uint32_t runs_max = 64;
  uint32_t runs = 0;
  copy_run run[runs_max];
};
static_assert(sizeof(copy_run) == 48 && sizeof(copy_batch) <= 4096);

/// The bytes that a thread moves at once: 16, or the largest of 8, 4, 2 and 1 that divides all addresses,
/// strides and the size.
TERRACE_HOST_DEVICE constexpr uint32_t unit_bytes(const copy_run& run) {
  uint64_t all = run.destination | run.source | run.bytes | 16;
  if (run.count > 1)
    all |= run.destination_stride | run.source_stride;
  return static_cast<uint32_t>(all & (~all + 1));
}

/// The share of one of `threads` threads in a run: units `thread`, `thread + threads` and so on, so that
/// adjacent threads move adjacent bytes. `move(destination, source, bytes)` is called with 1, 2, 4, 8 or 16
/// `bytes` and both addresses aligned to that.
template <class Move>
TERRACE_HOST_DEVICE void copy_share(const copy_run& run, uint64_t thread, uint64_t threads, Move&& move) {
  const uint32_t unit = unit_bytes(run);
  const uint64_t per_piece = run.bytes / unit;
  const uint64_t units = per_piece * run.count;
  for (uint64_t i = thread; i < units; i += threads) {
    const uint64_t piece = i / per_piece;
    const uint64_t offset = (i - piece * per_piece) * unit;
    move(run.destination + piece * run.destination_stride + offset,
         run.source + piece * run.source_stride + offset, unit);
  }
}

} // namespace terrace::gpu
