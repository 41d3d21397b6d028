// alloc_mixed: what an allocation and a free cost in an arena that several models share, and what is left of its space.
#include "bench/benchmark.hpp"
#include "memory/allocator.hpp"

#include <array>
#include <random>

namespace terrace::bench {

namespace {

constexpr uint64_t kib = 1024;
constexpr uint64_t arena_bytes = 32ULL << 30;
constexpr uint64_t header_bytes = 4 * kib; ///< in front of each object, so no extent is a power of two
constexpr int calls = 100'000;             ///< of each kind, that are measured
constexpr double full = 0.8;

struct workload {
  std::string_view name;
  std::array<uint64_t, 3> payloads;
};
constexpr workload mixes[] = {
    {"powers", {256 * kib, 1024 * kib, 4096 * kib}},
    {"odd", {320 * kib, 896 * kib, 3584 * kib}},
};

struct outcome {
  double mean_ns = 0;
  double p99_ns = 0;
  double fragmentation_percent = 0;
};

/// Fills four fifths, then frees an object at random and allocates until four fifths are full again, for several
/// lifetimes of the arena; the last calls are measured. Then asks for the smallest size until it is refused.
outcome measure(const std::string& name, std::span<const uint64_t> sizes, uint64_t seed) {
  uint64_t smallest = *std::min_element(sizes.begin(), sizes.end());
  auto space = must(make_allocator(name, {.capacity_bytes = arena_bytes, .slot_bytes = sizes[0]}), name);
  std::mt19937_64 random(seed);
  std::vector<extent> live;
  std::vector<double> samples;
  uint64_t used = 0;
  auto limit = static_cast<uint64_t>(full * static_cast<double>(space->usage().capacity_bytes));
  bool measured = false;
  auto timed = [&](auto&& call) {
    double took = seconds_of(call) * 1e9;
    if (measured)
      samples.push_back(took);
  };
  auto fill = [&] {
    while (true) {
      uint64_t bytes = sizes[random() % sizes.size()];
      if (used + bytes > limit)
        return;
      result<std::vector<extent>> taken;
      timed([&] { taken = space->allocate({&bytes, 1}); });
      live.push_back(must(std::move(taken), name)[0]);
      used += live.back().size;
    }
  };
  auto drop = [&] {
    std::swap(live[random() % live.size()], live.back());
    timed([&] { space->free({&live.back(), 1}); });
    used -= live.back().size;
    live.pop_back();
  };
  fill();
  for (size_t warm_up = live.size() * 20; warm_up > 0; --warm_up) {
    drop();
    fill();
  }
  measured = true;
  while (samples.size() < 2 * calls) {
    drop();
    fill();
  }
  uint64_t free_bytes = space->usage().free_bytes, allocatable = 0;
  while (auto taken = space->allocate({&smallest, 1}))
    allocatable += taken->front().size;
  double sum = 0;
  for (double s : samples)
    sum += s;
  return {sum / static_cast<double>(samples.size()), percentile(samples, 0.99),
          100 * (1 - static_cast<double>(allocatable) / static_cast<double>(free_bytes))};
}

} // namespace

void alloc_mixed(const settings& options, const reporter& report) {
  for (const workload& mix : mixes) {
    std::vector<uint64_t> sizes;
    for (uint64_t payload : mix.payloads)
      sizes.push_back(payload + header_bytes);
    for (std::string name : {"free_list", "size_class"}) {
      uint64_t seed = 0;
      auto ran = interleave(
          options.rounds,
          [&] {
            auto o = measure(name, sizes, ++seed);
            return std::vector{o.mean_ns, o.p99_ns, o.fragmentation_percent};
          },
          [&] {
            auto o = measure("paged", {&sizes[1], 1}, seed);
            return std::vector{o.mean_ns, o.p99_ns, o.fragmentation_percent};
          });
      std::string base = "alloc_mixed " + name + " " + std::string(mix.name);
      // `size_class` is the default and has to reach the aims; the free list stands beside it.
      bool judged = name == "size_class";
      report({.name = base + ", a call",
              .unit = "ns",
              .value = ran.value[0],
              .limit = ran.limit[0],
              .floor = 5,
              .aim = 5,
              .rounds = options.rounds,
              .bounded = judged});
      report({.name = base + ", p99",
              .unit = "ns",
              .value = ran.value[1],
              .limit = ran.limit[1],
              .floor = 1000,
              .aim = 1000,
              .rounds = options.rounds,
              .absolute = true,
              .bounded = judged});
      report({.name = base + ", fragmentation",
              .unit = "%",
              .value = ran.value[2],
              .limit = ran.limit[2],
              .floor = 3,
              .aim = 3,
              .rounds = options.rounds,
              .absolute = true,
              .bounded = judged});
    }
  }
}

} // namespace terrace::bench
