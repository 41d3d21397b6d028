// Sets up transfers between host memory and a device, directly on src/gpu: the machine's first GPU, or the
// host device if there is none.
#pragma once

#include "bench/benchmark.hpp"
#include "gpu/copy_stream.hpp"
#include "gpu/cuda/cuda_device.hpp"
#include "gpu/host/host_engine.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include <poll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

namespace terrace::bench {

// KV of an 8B-class model: 8 KV heads of 128 in bf16, 32 layers.
inline constexpr uint64_t gpu_layers = 32;
inline constexpr uint64_t half_token_bytes = 8 * 128 * 2; // K or V in one layer
inline constexpr uint64_t gpu_block_tokens = 16;
inline constexpr uint64_t half_block_bytes = gpu_block_tokens * half_token_bytes;
inline constexpr uint64_t block_layer_bytes = 2 * half_block_bytes;
inline constexpr uint64_t blocks_of_object = 16;

inline double host_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

inline std::shared_ptr<const mapping> host_pages(uint64_t bytes) {
  unique_fd file(::memfd_create("terrace-bench", MFD_CLOEXEC));
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    give_up("no shared memory");
  auto pages = std::make_shared<const mapping>(must(mapping::map(file.get(), bytes, true), "mapping memory"));
  std::memset(pages->data(), 0x3c, bytes);
  return pages;
}

/// A device with a region of blocks, whose layers lie one after the other, and an arena of objects.
struct gpu_setup {
  std::string kind; ///< used in the names of figures
  std::string uuid; ///< UUID of a GPU
  uint64_t blocks = 0;
  std::shared_ptr<gpu::device> device;
  std::shared_ptr<gpu::memory> region, arena;
  std::shared_ptr<const gpu::generation_page> page;
  std::shared_ptr<gpu::attached_page> attached;
  std::vector<uint64_t> table; ///< the block of each place in the prefix; they lie anywhere
  uint32_t generation = 0;
  uint64_t next_id = 1;

  explicit gpu_setup(bool small = false, gpu::cuda_device_options options = {}) {
    if (auto driver = cuda::driver::open()) {
      kind = "cuda";
      auto devices = must((*driver)->devices(), "asking for devices");
      uuid = cuda::to_text(devices.front().uuid);
      device = must(gpu::make_cuda_device(*driver, devices.front().uuid, options), "opening a GPU");
    } else {
      kind = "host_device";
      device = must(gpu::make_host_device(), "making a host device");
    }
    blocks = small ? blocks_of_object : (1ULL << 30) / (gpu_layers * block_layer_bytes);
    region = must(device->allocate(bytes()), "allocating device memory");
    arena = must(device->pin(host_pages(bytes())), "pinning host memory");
    page = std::make_shared<const gpu::generation_page>(
        must(gpu::generation_page::make(gpu_layers), "making a page"));
    attached = must(device->attach(page), "attaching a page");
    table.resize(blocks);
    std::iota(table.begin(), table.end(), 0);
    std::mt19937 random(3);
    for (size_t i = table.size(); i > 1; --i)
      std::swap(table[i - 1], table[random() % i]);
  }

  uint64_t bytes() const { return blocks * gpu_layers * block_layer_bytes; }
  uint64_t layer_bytes() const { return blocks * block_layer_bytes; }

  gpu::copy_request request() { return {next_id++, region, arena, attached, {}, {}}; }

  /// Copies layer by layer, with K and V of each block apart, as vLLM lays them out; objects have 16 blocks,
  /// layer by layer.
  gpu::copy_request of_blocks() {
    auto made = request();
    ++generation;
    for (uint64_t layer = 0; layer < gpu_layers; ++layer) {
      gpu::copy_part part;
      for (uint64_t i = 0; i < blocks; ++i)
        part.copies.push_back(
            {.region_offset = layer * layer_bytes() + table[i] * half_block_bytes,
             .object_offset =
                 ((i / blocks_of_object * gpu_layers + layer) * 2 * blocks_of_object + i % blocks_of_object) *
                 half_block_bytes,
             .bytes = half_block_bytes,
             .region_stride = blocks * half_block_bytes,
             .object_stride = blocks_of_object * half_block_bytes,
             .count = 2});
      part.signal = gpu::generation{static_cast<uint32_t>(layer), generation};
      made.parts.push_back(std::move(part));
    }
    return made;
  }

  /// Copies layer by layer, with each token apart: objects have all layers of a token together.
  gpu::copy_request of_tokens() {
    constexpr uint64_t piece = 2 * half_token_bytes;
    auto made = request();
    for (uint64_t layer = 0; layer < gpu_layers; ++layer) {
      gpu::copy_part part;
      for (uint64_t i = 0; i < blocks; ++i)
        part.copies.push_back({.region_offset = layer * layer_bytes() + table[i] * block_layer_bytes,
                               .object_offset = (i * gpu_block_tokens * gpu_layers + layer) * piece,
                               .bytes = piece,
                               .region_stride = piece,
                               .object_stride = gpu_layers * piece,
                               .count = gpu_block_tokens});
      made.parts.push_back(std::move(part));
    }
    return made;
  }

  /// The limit: copies the same bytes in 32 pieces.
  gpu::copy_request whole() {
    auto made = request();
    for (uint64_t i = 0; i < gpu_layers; ++i) {
      gpu::copy_part part;
      part.copies.push_back({.region_offset = i * layer_bytes(),
                             .object_offset = i * layer_bytes(),
                             .bytes = layer_bytes(),
                             .region_stride = 0,
                             .object_stride = 0,
                             .count = 1});
      made.parts.push_back(std::move(part));
    }
    return made;
  }
};

/// Returns the seconds until all of these are over; `seen` is called whenever some have ended.
template <class Seen>
double transfer(gpu::copy_stream& stream, std::vector<gpu::copy_request> requests, Seen&& seen) {
  return seconds_of([&] {
    for (auto& request : requests)
      must(stream.submit(std::move(request)), "submitting a copy");
    while (stream.requests() != 0) {
      pollfd watched{stream.descriptor(), POLLIN, 0};
      ::poll(&watched, 1, -1);
      for (auto& ended : stream.drain())
        if (ended.failure)
          give_up("a copy failed: " + ended.failure->text);
      seen();
    }
  });
}
inline double transfer(gpu::copy_stream& stream, gpu::copy_request request) {
  std::vector<gpu::copy_request> one;
  one.push_back(std::move(request));
  return transfer(stream, std::move(one), [] {});
}

} // namespace terrace::bench
