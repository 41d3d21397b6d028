// Transfers between host memory and a device, directly on src/gpu: on the machine's first GPU, or on the host device where there
// is none. The names of the figures say which.
#include "bench/benchmark.hpp"
#include "gpu/copy_stream.hpp"
#include "gpu/cuda/cuda_device.hpp"
#include "gpu/host/host_device.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include <poll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

namespace terrace::bench {

namespace {

// KV of an 8B-class model: 8 KV heads of 128 in bf16, 32 layers.
constexpr uint64_t gpu_layers = 32;
constexpr uint64_t half_token_bytes = 8 * 128 * 2; // K or V in one layer
constexpr uint64_t gpu_block_tokens = 16;
constexpr uint64_t half_block_bytes = gpu_block_tokens * half_token_bytes;
constexpr uint64_t block_layer_bytes = 2 * half_block_bytes;
constexpr uint64_t blocks_of_object = 16;

double host_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::shared_ptr<const mapping> host_pages(uint64_t bytes) {
  unique_fd file(::memfd_create("terrace-bench", MFD_CLOEXEC));
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    give_up("no shared memory");
  auto pages = std::make_shared<const mapping>(must(mapping::map(file.get(), bytes, true), "mapping memory"));
  std::memset(pages->data(), 0x3c, bytes);
  return pages;
}

/// A device with a region of blocks, whose layers lie one after the other, and an arena of objects.
struct gpu_setup {
  std::string kind; ///< for the names of figures
  uint64_t blocks = 0;
  std::shared_ptr<gpu::device> device;
  std::shared_ptr<gpu::memory> region, arena;
  std::shared_ptr<const gpu::generation_page> page;
  std::shared_ptr<gpu::attached_page> attached;
  std::vector<uint64_t> table; ///< the block of each place in the prefix: they lie anywhere
  uint32_t generation = 0;
  uint64_t next_id = 1;

  explicit gpu_setup(bool small = false) {
    if (auto driver = cuda::driver::open()) {
      kind = "cuda";
      auto devices = must((*driver)->devices(), "asking for devices");
      device = must(gpu::make_cuda_device(*driver, devices.front().uuid), "opening a GPU");
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

  /// Layer by layer, K and V of each block apart, as vLLM lays them out; objects have 16 blocks, layer by layer.
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

  /// Layer by layer, each token apart: objects have all layers of a token together.
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

  /// The limit: the same bytes in 32 pieces.
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

/// Seconds until all of these are over; `seen` is called whenever something has ended.
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
double transfer(gpu::copy_stream& stream, gpu::copy_request request) {
  std::vector<gpu::copy_request> one;
  one.push_back(std::move(request));
  return transfer(stream, std::move(one), [] {});
}

void measure_rates(const settings& options, const reporter& report, gpu::direction way,
                   const std::string& name) {
  gpu_setup on;
  auto stream = must(gpu::copy_stream::open(on.device, way), "opening a stream");
  for (auto& request : {on.of_blocks(), on.of_tokens(), on.whole()}) {
    uint64_t bytes = 0;
    for (auto& part : request.parts)
      bytes += bytes_of(part);
    if (bytes != on.bytes())
      give_up("a request does not copy everything");
  }
  auto rate = [&](double seconds) { return static_cast<double>(on.bytes()) / 1e9 / seconds; };
  transfer(*stream, on.whole()); // pages are there from now on
  auto sides = interleave(
      options.rounds,
      [&] {
        return std::vector{rate(transfer(*stream, on.of_blocks())), rate(transfer(*stream, on.of_tokens()))};
      },
      [&] { return std::vector{rate(transfer(*stream, on.whole()))}; });
  // A processor copies small pieces at its own rate; what counts is a GPU.
  const bool counts = on.kind == "cuda";
  report(sides.judged({.name = name + "_blocks_" + on.kind,
                       .unit = "GB/s",
                       .floor = 0.8,
                       .aim = 0.93,
                       .direction = better::higher,
                       .bounded = counts}));
  report(of_rounds({.name = name + "_tokens_" + on.kind,
                    .unit = "GB/s",
                    .floor = 0.5,
                    .aim = 0.8,
                    .direction = better::higher,
                    .bounded = counts},
                   sides.values[1], sides.limits[0]));
}

} // namespace

void gpu_load(const settings& options, const reporter& report) {
  measure_rates(options, report, gpu::direction::load, "gpu_load");
}

void gpu_store(const settings& options, const reporter& report) {
  measure_rates(options, report, gpu::direction::store, "gpu_store");
}

void gpu_layer0(const settings& options, const reporter& report) {
  gpu_setup on;
  auto stream = must(gpu::copy_stream::open(on.device, gpu::direction::load), "opening a stream");
  transfer(*stream, on.whole());
  std::vector<double> first, share;
  for (int i = 0; i < options.rounds; ++i) {
    std::vector<gpu::copy_request> one;
    one.push_back(on.of_blocks());
    std::optional<double> usable;
    double begin = seconds_now();
    double all = transfer(*stream, std::move(one), [&] {
      if (!usable && on.page->has({0, on.generation}))
        usable = seconds_now() - begin;
    });
    first.push_back(usable.value_or(all) * 1e6);
    share.push_back(all * 1e6 / gpu_layers);
  }
  report(of_rounds({.name = "gpu_layer0_" + on.kind, .unit = "us", .floor = 2, .aim = 1.5}, first, share));
}

void device_overhead(const settings& options, const reporter& report) {
  constexpr uint64_t objects = 2'000, requests = 100, piece = 64;
  gpu_setup on(true);
  auto stream = must(gpu::copy_stream::open(on.device, gpu::direction::load), "opening a stream");
  // So little is copied that what remains is the work of making, checking, issuing and completing.
  auto small = [&](uint64_t parts) {
    auto made = on.request();
    ++on.generation;
    for (uint64_t i = 0; i < parts; ++i) {
      gpu::copy_part part;
      part.copies.push_back({.region_offset = i * piece,
                             .object_offset = i * piece,
                             .bytes = piece,
                             .region_stride = 0,
                             .object_stride = 0,
                             .count = 1});
      part.signal = gpu::generation{static_cast<uint32_t>(i), on.generation};
      made.parts.push_back(std::move(part));
    }
    return made;
  };
  auto cpu_us = [&](uint64_t count, uint64_t parts) {
    double begin = host_seconds(CLOCK_PROCESS_CPUTIME_ID);
    std::vector<gpu::copy_request> all;
    for (uint64_t i = 0; i < count; ++i)
      all.push_back(small(parts));
    transfer(*stream, std::move(all), [] {});
    return (host_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin) * 1e6 / static_cast<double>(count * parts);
  };
  cpu_us(objects, 1);
  std::vector<double> per_object, per_layer;
  for (int i = 0; i < options.rounds; ++i) {
    per_object.push_back(cpu_us(objects, 1));
    per_layer.push_back(cpu_us(requests, gpu_layers));
  }
  for (auto& [what, samples] : {std::pair("object", per_object), std::pair("layer", per_layer)})
    report(of_rounds({.name = std::string("device_overhead_") + what + "_" + on.kind,
                      .unit = "us CPU",
                      .floor = 10,
                      .aim = 5,
                      .absolute = true},
                     samples));
}

} // namespace terrace::bench
