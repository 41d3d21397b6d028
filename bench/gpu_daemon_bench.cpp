// Loads and stores of 1 GiB between host memory and blocks on a GPU through a daemon in its default
// configuration. Reports nothing without a GPU.
#include "bench/bench_daemon.hpp"
#include "bench/gpu_setup.hpp"
#include "bench/workload.hpp"
#include "gpu/cuda/device_memory.hpp"

#include <iostream>

namespace terrace::bench {

namespace {

constexpr uint64_t whole_block_bytes = gpu_layers * block_layer_bytes;
constexpr uint64_t object_blocks_bytes = blocks_of_object * whole_block_bytes; // 256 tokens

/// An engine's memory: layer by layer, with K and V of each block apart. Objects have their blocks one after
/// the other.
class engine_blocks {
 public:
  engine_blocks(client::connection& by, const gpu_setup& on)
      : context_(
            must(cuda::context::retain(must(cuda::driver::open(), "opening the driver"), 0), "a context")),
        memory_(must(cuda::allocation::make(context_, on.bytes()), "allocating a region")) {
    auto handle = must(memory_.share(), "sharing a region");
    client::device_allocation shared{.device = on.uuid, .bytes = on.bytes()};
    std::memcpy(shared.handle.data(), &handle, shared.handle.size());
    region_ = must(by.register_device_region(shared), "registering a region");
    for (uint64_t block : on.table)
      runs_.push_back({.offset = block * half_block_bytes,
                       .bytes = half_block_bytes,
                       .stride = on.blocks * half_block_bytes,
                       .count = static_cast<uint32_t>(whole_block_bytes / half_block_bytes)});
    runs_per_object_.assign(on.blocks / blocks_of_object, blocks_of_object);
  }
  const client::registered_region& region() const { return region_; }
  std::span<const client::run> runs() const { return runs_; }
  std::span<const uint32_t> runs_per_object() const { return runs_per_object_; }

 private:
  std::shared_ptr<const cuda::context> context_;
  cuda::allocation memory_;
  client::registered_region region_;
  std::vector<client::run> runs_;
  std::vector<uint32_t> runs_per_object_;
};

} // namespace

void gpu_daemon(const settings& options, const reporter& report) {
  if (!cuda::driver::open()) {
    std::cerr << "gpu_daemon needs a GPU" << std::endl;
    return;
  }
  gpu_setup on;
  auto loads = must(gpu::copy_stream::open(on.device, gpu::direction::load), "opening a stream");
  auto stores = must(gpu::copy_stream::open(on.device, gpu::direction::store), "opening a stream");
  bench_daemon daemon(options, {.host_bytes = 4ULL << 30, .disk = false});
  auto by = connect(daemon.socket());
  auto space = must(by.open_space(space_of(object_blocks_bytes)), "opening a space");
  engine_blocks engine(by, on);
  auto rate = [&](double seconds) { return static_cast<double>(on.bytes()) / 1e9 / seconds; };
  uint64_t seed = 20;
  std::vector<digest> chain;
  auto store = [&] { // objects that nobody has stored yet
    chain = digests_of(on.bytes() / object_blocks_bytes, ++seed);
    auto prefix = client::prefix::of_digests(chain);
    double seconds = seconds_of([&] {
      must(by.store({.in = space,
                     .what = prefix,
                     .region = &engine.region(),
                     .runs = engine.runs(),
                     .runs_per_object = engine.runs_per_object()}),
           "storing");
    });
    return rate(seconds);
  };
  auto load = [&] { // loads under a lease, as engines do
    auto prefix = client::prefix::of_digests(chain);
    return rate(seconds_of([&] {
      auto found = must(by.lookup({.in = space, .what = prefix, .lease = true}), "looking up");
      if (found.found_chunks != chain.size())
        give_up("the chain is not there, or cannot be leased");
      must(by.load({.lease = found.held.id(),
                    .region = &engine.region(),
                    .runs = engine.runs(),
                    .runs_per_object = engine.runs_per_object()}),
           "loading");
    }));
  };
  auto direct_bytes = [&] {
    return must(by.admin().status(), "asking for status").devices.at(0).direct_bytes;
  };
  store();
  for (uint64_t before = direct_bytes(); load(), direct_bytes() - before != on.bytes();
       before = direct_bytes())
    ; // waits until the process has pinned the memory that they are read from
  transfer(*loads, on.whole());
  transfer(*stores, on.whole());
  auto sides = interleave(
      options.rounds,
      [&] {
        return std::vector{store(), load()};
      },
      [&] {
        return std::vector{rate(transfer(*stores, on.whole())), rate(transfer(*loads, on.whole()))};
      });
  for (size_t i : {1, 0})
    report(of_rounds({.name = i == 1 ? "gpu_daemon_load" : "gpu_daemon_store",
                      .unit = "GB/s",
                      .floor = 0.7,
                      .aim = 0.9,
                      .direction = better::higher},
                     sides.values[i], sides.limits[i]));
}

} // namespace terrace::bench
