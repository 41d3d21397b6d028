// Transfers between host memory and a device, directly on src/gpu: the machine's first GPU, or the host
// device if there is none. The names of the figures say which.
#include "bench/gpu_setup.hpp"

#include <atomic>
#include <thread>

namespace terrace::bench {

namespace {

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
  transfer(*stream, on.whole()); // from now on the pages exist
  auto sides = interleave(
      options.rounds,
      [&] {
        return std::vector{rate(transfer(*stream, on.of_blocks())), rate(transfer(*stream, on.of_tokens()))};
      },
      [&] { return std::vector{rate(transfer(*stream, on.whole()))}; });
  // Only a GPU counts: a processor copies small pieces at its own rate.
  const bool counts = on.kind == "cuda";
  report(sides.judged({.name = name + "_blocks_" + on.kind,
                       .unit = "GB/s",
                       .floor = 0.8,
                       .aim = 0.93,
                       .direction = better::higher,
                       .bounded = counts}));
  // `gpu_pieces` measures how an engine copies such pieces.
  report(of_rounds(
      {.name = name + "_tokens_" + on.kind, .unit = "GB/s", .direction = better::higher, .bounded = false},
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
    auto request = on.of_blocks();
    std::atomic<double> usable = 0;
    double begin = seconds_now();
    // Waits as the engine's stream does. The stream needs no thread for it; this thread is still busy with
    // the layers that follow.
    std::thread watches([&] {
      while (!on.page->has({0, on.generation}))
        ;
      usable = seconds_now() - begin;
    });
    double all = transfer(*stream, std::move(request));
    watches.join();
    first.push_back(usable * 1e6);
    share.push_back(all * 1e6 / gpu_layers);
  }
  report(of_rounds({.name = "gpu_layer0_" + on.kind, .unit = "us", .floor = 2, .aim = 1.5}, first, share));
}

void device_overhead(const settings& options, const reporter& report) {
  constexpr uint64_t objects = 2'000, requests = 100, piece = 64;
  gpu_setup on(true);
  auto stream = must(gpu::copy_stream::open(on.device, gpu::direction::load), "opening a stream");
  // The copies are so small that the remaining time is that of making, checking, issuing and completing
  // requests.
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
