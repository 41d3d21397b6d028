// The data that steps of the reference engine compute with, on a GPU or in its simulation.
#pragma once

#include "bench/engine/kernels.hpp"

#if defined(__CUDACC__)
#define TERRACE_ENGINE_HOST_DEVICE __host__ __device__
#else
#define TERRACE_ENGINE_HOST_DEVICE
#endif

namespace terrace::bench {

/// A token to compute.
struct device_row {
  uint32_t token = 0;
  uint32_t position = 0;
  uint32_t table = 0; ///< begin of its request's blocks in the list of all
};

/// Four numbers that are read at once from an aligned address.
struct alignas(16) four_floats {
  float of[4];
};

/// The paged KV as one layer sees it.
struct device_kv_view {
  float* blocks;          ///< all layers of all blocks
  const uint32_t* tables; ///< the blocks of all requests of the step
  uint64_t floats, block_floats, layer_offset, table_entries;

  TERRACE_ENGINE_HOST_DEVICE float* layer(const device_row& row, uint64_t position) const {
    return blocks + tables[row.table + position / block_tokens] * block_floats + layer_offset;
  }
};

} // namespace terrace::bench
