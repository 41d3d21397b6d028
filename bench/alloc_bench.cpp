// alloc_mixed: what an allocation and a free cost in an arena that several models share, and what is left of its space.
#include "bench/benchmark.hpp"
#include "memory/allocator.hpp"

#include <algorithm>
#include <array>
#include <random>

namespace terrace::bench {

namespace {

constexpr uint64_t kib = 1024;
constexpr uint64_t arena_bytes = 32ULL << 30;
constexpr uint64_t header_bytes = 4 * kib; ///< in front of each object, so no extent is a power of two
constexpr int calls = 1'000'000;           ///< that are measured, with a clock and without
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

/// An arena that is kept four fifths full, as a cache keeps its own: for each new object of a random size, objects at
/// random leave until there is room.
class shared_arena {
 public:
  shared_arena(const std::string& name, std::span<const uint64_t> sizes, uint64_t seed)
      : sizes_(sizes.begin(), sizes.end()), random_(seed),
        space_(must(make_allocator(name, {.capacity_bytes = arena_bytes, .slot_bytes = sizes[0]}), name)),
        limit_(static_cast<uint64_t>(full * static_cast<double>(space_->usage().capacity_bytes))) {}

  /// `timed` runs each call of the allocator.
  template <class F>
  void step(F&& timed) {
    uint64_t bytes = sizes_[random_() % sizes_.size()];
    for (; used_ + bytes > limit_; ++calls_) {
      std::swap(live_[random_() % live_.size()], live_.back());
      timed([&] { space_->free({&live_.back(), 1}); });
      used_ -= live_.back().size;
      live_.pop_back();
    }
    timed([&] { live_.push_back((*space_->allocate({&bytes, 1}))[0]); });
    used_ += live_.back().size;
    ++calls_;
  }

  /// Objects have left and come many times as often as there is room for them.
  void age() {
    auto plain = [](auto&& call) { call(); };
    while (calls_ < 30 * live_.size() + 1000)
      step(plain);
  }

  uint64_t calls() const { return calls_; }

  /// 1 - bytes allocatable as the smallest object / free bytes, by trying it. Leaves the arena full.
  double fragmentation() {
    uint64_t smallest = *std::min_element(sizes_.begin(), sizes_.end());
    uint64_t free_bytes = space_->usage().free_bytes, allocatable = 0;
    while (auto taken = space_->allocate({&smallest, 1}))
      allocatable += taken->front().size;
    return 1 - static_cast<double>(allocatable) / static_cast<double>(free_bytes);
  }

 private:
  std::vector<uint64_t> sizes_;
  std::mt19937_64 random_;
  std::unique_ptr<allocator> space_;
  std::vector<extent> live_;
  uint64_t limit_;
  uint64_t used_ = 0;
  uint64_t calls_ = 0;
};

/// The mean without a clock between calls, then the single calls with one.
outcome measure(const std::string& name, std::span<const uint64_t> sizes, uint64_t seed) {
  shared_arena arena(name, sizes, seed);
  arena.age();
  outcome found;
  uint64_t before = arena.calls();
  double took = seconds_of([&] {
    while (arena.calls() < before + calls)
      arena.step([](auto&& call) { call(); });
  });
  found.mean_ns = took * 1e9 / static_cast<double>(arena.calls() - before);
  std::vector<double> samples;
  while (samples.size() < calls)
    arena.step([&](auto&& call) { samples.push_back(seconds_of(call) * 1e9); });
  found.p99_ns = percentile(samples, 0.99);
  found.fragmentation_percent = 100 * arena.fragmentation();
  return found;
}

} // namespace

void alloc_mixed(const settings& options, const reporter& report) {
  for (const workload& mix : mixes) {
    std::vector<uint64_t> sizes;
    for (uint64_t payload : mix.payloads)
      sizes.push_back(payload + header_bytes);
    for (std::string name : {"buffer", "free_list", "mixed", "size_class"}) {
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
      // `size_class` is the default and has to reach the aims; the others stand beside it.
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
