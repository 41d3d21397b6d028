// Replays random requests with a disk of any speed, in simulated time. With the choice they take at most 5 % longer
// than without the disk, and at most 5 % longer than if everything were read, apart from the cost of the first reads.
#include "index/object_header.hpp"
#include "tests/index/spaces.hpp"
#include "tests/support/seed.hpp"
#include "tier/search/recompute_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace terrace;

namespace {

using clock = read_meter::time_point;

/// One client and its disk; times in seconds.
struct simulated {
  explicit simulated(uint64_t seed, double latency_max_s = 200e-6) : random(seed) {
    spec.chunk_tokens = 256;
    spec.pools[0].object_bytes = static_cast<uint64_t>(log_uniform(64 << 10, 32 << 20));
    tokens_per_s = log_uniform(300, 1e6);
    disk_bytes_per_s = log_uniform(1e6, 100e9);
    disk_latency_s = log_uniform(20e-6, latency_max_s);
  }

  space_spec spec = terrace::test::small_space();
  double tokens_per_s = 1;
  double disk_bytes_per_s = 1;
  double disk_latency_s = 0; ///< latency of each request
  bool chooses = true;       ///< false: it reads all chunks that are found
  std::mt19937_64 random;

  read_meter meter;
  double now = 3600, without = 0, all = 0;
  size_t recomputed = 0;

  double log_uniform(double from, double to) {
    return std::exp(std::uniform_real_distribution(std::log(from), std::log(to))(random));
  }
  static clock at(double s) {
    return clock(std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(s)));
  }
  double read_s(uint64_t bytes) const {
    return bytes == 0 ? 0 : disk_latency_s + static_cast<double>(bytes) / disk_bytes_per_s;
  }
  double compute_s(size_t chunks) const {
    return static_cast<double>(chunks) * spec.chunk_tokens / tokens_per_s;
  }

  /// Reads in pieces, as a disk does.
  void read(uint64_t bytes) {
    if (bytes == 0)
      return;
    meter.has_to_read(0, bytes, at(now));
    now += disk_latency_s;
    while (bytes != 0) {
      uint64_t piece = std::min<uint64_t>(bytes, 8 << 20);
      now += static_cast<double>(piece) / disk_bytes_per_s;
      meter.arrived(piece, at(now));
      meter.has_to_read(bytes, bytes - piece, at(now));
      bytes -= piece;
    }
  }

  void request() {
    auto chunks = static_cast<uint32_t>(random() % 60 + 1);
    tier_answer host{tier_kind::host, object_bitmap(chunks)}, disk{tier_kind::disk, object_bitmap(chunks)};
    auto in_host = static_cast<uint32_t>(random() % (chunks + 1)),
         scattered = static_cast<uint32_t>(random() % 3);
    for (uint32_t i = 0; i < chunks; ++i) {
      if (i < in_host || (scattered != 0 && random() % (scattered * 4) == 0))
        host.present.set(i);
      else if (random() % 200 != 0)
        disk.present.set(i);
    }
    uint64_t object = physical_bytes_for(spec.pools[0].object_bytes);
    uint32_t first_absent = 0;
    while (first_absent < chunks && host.present.test(first_absent))
      ++first_absent;
    prefix_planner planner(spec, {chunks, 0, UINT64_MAX}, {std::move(host), std::move(disk)});
    while (planner.step())
      ;
    const prefix_plan& plan = planner.plan();
    uint32_t offered = plan.found_chunks;
    if (chooses) {
      recompute_terms terms{.tokens_per_s = tokens_per_s};
      terms.tiers[static_cast<size_t>(tier_kind::disk)] = meter.state(at(now));
      recompute_choice choice(planner, spec, terms);
      while (choice.step())
        ;
      offered = choice.chunks();
    }
    auto bytes_of = [&](uint32_t length) {
      return object * static_cast<uint64_t>(std::count(plan.object_tiers.begin(),
                                                       plan.object_tiers.begin() + length, tier_kind::disk));
    };
    double rest = compute_s(chunks - plan.found_chunks + 1); // its last tokens are always computed
    recomputed += plan.found_chunks - offered;
    without += rest + compute_s(plan.found_chunks - std::min(first_absent, plan.found_chunks));
    all += rest + read_s(bytes_of(plan.found_chunks));
    read(bytes_of(offered));
    now += rest + compute_s(plan.found_chunks - offered);
  }

  /// Returns the most that reads before the first measurement cost, and what one request loses because it
  /// reads no more.
  double first_cost() const {
    uint64_t object = physical_bytes_for(spec.pools[0].object_bytes);
    return read_s(std::max<uint64_t>(recompute_choice::trial_bytes, object)) + compute_s(60);
  }
};

std::string describe(const simulated& of) {
  return "object " + std::to_string(of.spec.pools[0].object_bytes) + ", prefill " +
         std::to_string(of.tokens_per_s) + " tokens/s, disk " + std::to_string(of.disk_bytes_per_s / 1e6) +
         " MB/s, latency " + std::to_string(of.disk_latency_s * 1e6) + " us";
}

} // namespace

TEST(RecomputeReplay, IsNeverSlowerThanWithoutTheDiskNorThanWithAllOfIt) {
  auto seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  size_t slow_runs = 0, fast_runs = 0;
  for (uint64_t run = 0; run < 400; ++run) {
    simulated client(seed + run);
    double start = client.now;
    for (int i = 0; i < 200; ++i)
      client.request();
    double took = client.now - start;
    EXPECT_LE(took, 1.05 * client.without + client.first_cost()) << describe(client);
    EXPECT_LE(took, 1.05 * client.all + client.first_cost()) << describe(client);
    slow_runs += client.all > 1.05 * client.without ? 1 : 0;
    fast_runs += client.without > 1.05 * client.all ? 1 : 0;
  }
  EXPECT_GT(slow_runs, 50u);
  EXPECT_GT(fast_runs, 50u);
}

/// The seek time of a disk is part of the measured speed. Then short reads take longer than expected and long
/// ones less. More could be read, but the result is not slower than without the disk.
TEST(RecomputeReplay, WithALatencyOfMillisecondsItIsNotSlowerThanWithoutTheDisk) {
  auto seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  for (uint64_t run = 0; run < 200; ++run) {
    simulated client(seed + run, 2e-3);
    double start = client.now;
    for (int i = 0; i < 200; ++i)
      client.request();
    EXPECT_LE(client.now - start, 1.05 * client.without + client.first_cost()) << describe(client);
  }
}

/// The first test can fail: it does without the choice.
TEST(RecomputeReplay, WithoutTheChoiceASlowDiskMakesItSlower) {
  simulated client(terrace::test::test_seed());
  client.chooses = false;
  client.spec.pools[0].object_bytes = 8 << 20;
  client.tokens_per_s = 10'000;
  client.disk_bytes_per_s = 10e6;
  double start = client.now;
  for (int i = 0; i < 200; ++i)
    client.request();
  EXPECT_GT(client.now - start, 1.05 * client.without + client.first_cost());
}

/// Each change costs at most the reads before it is noticed: the requests of a few seconds.
TEST(RecomputeReplay, ADiskThatBecomesFastAgainIsUsedAgain) {
  simulated client(terrace::test::test_seed());
  client.spec.pools[0].object_bytes = 2 << 20;
  client.tokens_per_s = 100'000; // 2.56 ms per chunk, as a disk of 820 MB/s reads it
  client.disk_bytes_per_s = 20e6;
  for (int i = 0; i < 300; ++i)
    client.request();
  size_t slow = client.recomputed;
  EXPECT_GT(slow, 1000u);
  client.disk_bytes_per_s = 5e9;
  for (int i = 0; i < 3000; ++i)
    client.request();
  size_t before = client.recomputed;
  for (int i = 0; i < 300; ++i)
    client.request();
  EXPECT_EQ(client.recomputed, before);
}
