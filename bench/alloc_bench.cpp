// alloc_mixed: the cost of an allocation and a free in an arena that several models share, and how much of
// its space stays usable.
#include "bench/baseline_spaces.hpp"
#include "bench/benchmark.hpp"
#include "bench/sizes.hpp"
#include "memory/allocator.hpp"

#include <algorithm>
#include <array>
#include <random>

namespace terrace::bench {

namespace {

constexpr uint64_t arena_bytes = 32ULL << 30;
constexpr uint64_t alloc_header_bytes =
    4 * kib;                     ///< header in front of each object, so no extent is a power of two
constexpr int calls = 1'000'000; ///< measured calls, both with a clock and without
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
  double rounding_percent = 0; ///< share of the taken bytes that no object asked for
  double stuck_percent = 0;    ///< share of the objects for which more bytes had to leave than their own
};

/// An allocator as the tiers use it.
class tier_space : public object_space {
 public:
  tier_space(const std::string& name, uint64_t slot_bytes)
      : inner_(must(make_allocator(name, {.capacity_bytes = arena_bytes, .slot_bytes = slot_bytes}), name)) {}
  std::optional<extent> take(uint64_t bytes) override {
    auto taken = inner_->allocate({&bytes, 1});
    return taken ? std::optional(taken->front()) : std::nullopt;
  }
  void give(const extent& e) override { inner_->free({&e, 1}); }
  uint64_t capacity() const override { return inner_->usage().capacity_bytes; }
  uint64_t free_bytes() const override { return inner_->usage().free_bytes; }

 private:
  std::unique_ptr<allocator> inner_;
};

std::unique_ptr<object_space> make_space(const std::string& name, uint64_t slot_bytes) {
  if (name == "tlsf_baseline")
    return std::make_unique<tlsf_baseline>(arena_bytes);
  if (name == "buddy_baseline")
    return std::make_unique<buddy_baseline>(arena_bytes);
  return std::make_unique<tier_space>(name, slot_bytes);
}

/// An arena that is kept four fifths full, as a cache keeps its own: for each new object of a random size,
/// random objects leave until there is room.
class shared_arena {
 public:
  shared_arena(const std::string& name, std::span<const uint64_t> sizes, uint64_t seed)
      : sizes_(sizes.begin(), sizes.end()), random_(seed), space_(make_space(name, sizes[0])),
        limit_(static_cast<uint64_t>(full * static_cast<double>(space_->capacity()))) {}

  /// `timed` runs each call of the allocator except those that follow a failed one.
  template <class F>
  void step(F&& timed) {
    uint64_t bytes = sizes_[random_() % sizes_.size()];
    for (; used_ + bytes > limit_; ++calls_)
      drop_one(timed);
    ++stores_;
    std::optional<extent> place;
    timed([&] { place = space_->take(bytes); });
    for (stuck_ += place ? 0 : 1; !place; place = space_->take(bytes))
      drop_one([](auto&& call) { call(); });
    live_.push_back({*place, bytes});
    used_ += place->size;
    asked_ += bytes;
    ++calls_;
  }

  /// Replaces objects many times as often as there is room for them.
  void age() {
    auto plain = [](auto&& call) { call(); };
    while (calls_ < 30 * live_.size() + 1000)
      step(plain);
  }

  uint64_t calls() const { return calls_; }
  double stuck() const { return static_cast<double>(stuck_) / static_cast<double>(stores_); }
  double rounding() const { return 1 - static_cast<double>(asked_) / static_cast<double>(used_); }

  /// Returns 1 - bytes allocatable as the smallest object / free bytes, by trying it. Leaves the arena full.
  double fragmentation() {
    uint64_t smallest = *std::min_element(sizes_.begin(), sizes_.end());
    uint64_t free_bytes = space_->free_bytes(), allocatable = 0;
    while (auto taken = space_->take(smallest))
      allocatable += taken->size;
    return 1 - static_cast<double>(allocatable) / static_cast<double>(free_bytes);
  }

 private:
  template <class F>
  void drop_one(F&& timed) {
    std::swap(live_[random_() % live_.size()], live_.back());
    timed([&] { space_->give(live_.back().place); });
    used_ -= live_.back().place.size;
    asked_ -= live_.back().asked;
    live_.pop_back();
  }

  std::vector<uint64_t> sizes_;
  std::mt19937_64 random_;
  struct object {
    extent place;
    uint64_t asked;
  };
  std::unique_ptr<object_space> space_;
  std::vector<object> live_;
  uint64_t limit_;
  uint64_t used_ = 0;
  uint64_t asked_ = 0;
  uint64_t calls_ = 0, stores_ = 0, stuck_ = 0;
};

/// Measures the mean without a clock between calls, then single calls with one.
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
  found.rounding_percent = 100 * arena.rounding();
  found.stuck_percent = 100 * arena.stuck();
  found.fragmentation_percent = 100 * arena.fragmentation();
  return found;
}

} // namespace

void alloc_mixed(const settings& options, const reporter& report) {
  for (const workload& mix : mixes) {
    std::vector<uint64_t> sizes;
    for (uint64_t payload : mix.payloads)
      sizes.push_back(payload + alloc_header_bytes);
    for (std::string name :
         {"buffer", "free_list", "mixed", "size_class", "tlsf_baseline", "buddy_baseline"}) {
      uint64_t seed = 0;
      auto ran = interleave(
          options.rounds,
          [&] {
            auto o = measure(name, sizes, ++seed);
            return std::vector{o.mean_ns, o.p99_ns, o.fragmentation_percent, o.rounding_percent,
                               o.stuck_percent};
          },
          [&] {
            auto o = measure("paged", {&sizes[1], 1}, seed);
            return std::vector{o.mean_ns, o.p99_ns, o.fragmentation_percent, o.rounding_percent,
                               o.stuck_percent};
          });
      std::string base = "alloc_mixed " + name + " " + std::string(mix.name);
      // `size_class` is the default and has to reach the aims; the others are listed for comparison.
      bool judged = name == "size_class";
      auto tell = [&](const char* what, const char* unit, size_t which, double bound, bool absolute) {
        report(ran.judged({.name = base + what,
                           .unit = unit,
                           .floor = bound,
                           .aim = bound,
                           .absolute = absolute,
                           .bounded = judged},
                          which));
      };
      tell(", a call", "ns", 0, 5, false);
      tell(", p99", "ns", 1, 1000, true);
      tell(", fragmentation", "%", 2, 3, true);
      tell(", rounding", "%", 3, 3, true);
      tell(", stuck", "%", 4, 0.1, true);
    }
  }
}

} // namespace terrace::bench
