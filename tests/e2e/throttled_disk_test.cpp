// A disk of any speed costs a client nothing that declares how fast it computes: a replay with the disk takes
// no longer than one without.
//
// The disk is a real file system that is read at most at a given speed. The duration of a replay is derived
// from counts, the bytes read at that speed and the tokens computed, so that it does not depend on how busy
// the machine is.
#include "tests/support/seed.hpp"
#include "tests/support/throttled_mount.hpp"
#include "workload.hpp"

#include <cstdlib>
#include <random>

namespace terrace::e2e {
namespace {

using test::throttled_mount;

constexpr uint32_t prefill_tokens_per_s = 640;
/// Time of a chunk: as if it were read at 42 MB/s.
constexpr double compute_s = double{space_chunk_tokens} / prefill_tokens_per_s;
constexpr uint32_t chain_chunks = 8;
constexpr uint64_t chains = 12;
constexpr uint64_t trial_bytes = 16 * mebibyte; ///< read once from a disk that was not measured yet

std::string throttled_disk() {
  const char* path = std::getenv("THROTTLED_DISK");
  return path ? path : "";
}

struct replayed {
  uint64_t read_bytes = 0; ///< bytes read from disk
  uint64_t computed = 0;   ///< chunks computed
  double seconds(double read_bytes_per_s) const {
    return static_cast<double>(read_bytes) / read_bytes_per_s + static_cast<double>(computed) * compute_s;
  }
};

/// Replays as an engine does: it looks up, loads what is offered, computes the rest and stores.
replayed replay(daemon_under_test& daemon, bool declares, bool with_disk, uint64_t seed, size_t requests) {
  auto spec = test_space();
  spec.prefill_tokens_per_s = declares ? prefill_tokens_per_s : 0;
  tester engine(daemon.socket(), "engine", chain_chunks * object_bytes, spec);
  for (uint64_t chain = 1; chain <= chains; ++chain)
    EXPECT_EQ(engine.store(chain_of(chain, chain_chunks)), chain_chunks);
  uint64_t before = 0;
  if (with_disk) {
    // All chunks are on disk before the first request.
    EXPECT_TRUE(eventually([&] { return engine.tier("disk").objects == chains * chain_chunks; }));
    before = engine.tier("disk").bytes_read;
  }
  std::mt19937_64 random(seed);
  replayed all;
  for (size_t i = 0; i < requests; ++i) {
    auto chain = chain_of(random() % chains + 1, chain_chunks);
    auto found = engine.lookup(chain, true);
    if (found.found_chunks != 0) {
      auto load = engine.load_of(chain, {0, found.found_chunks});
      load.lease = found.held.id();
      load.what = {};
      auto loaded = engine->load(load, patiently());
      EXPECT_TRUE(loaded) << loaded.error().text;
      EXPECT_EQ(loaded->delivered_chunks, found.found_chunks);
      for (uint32_t k = 0; k < found.found_chunks; ++k)
        EXPECT_TRUE(has_content(chain[k], engine.piece(k)));
    }
    found.held.release();
    all.computed += chain_chunks - found.found_chunks;
    engine.store(chain);
  }
  if (with_disk)
    all.read_bytes = engine.tier("disk").bytes_read - before;
  return all;
}

daemon_options with_disk_at(const std::string& folder) {
  return {.host_bytes = 16 * mebibyte,
          .disk_bytes = 160 * mebibyte,
          .disk = "admission = \"always\"\n",
          .state_dir = folder,
          .more = "",
          .parent = "/tmp"};
}

class ThrottledDisk : public ::testing::TestWithParam<uint64_t> {};

TEST_P(ThrottledDisk, AReplayTakesNoLongerThanWithoutIt) {
  throttled_mount disk(throttled_disk(), GetParam());
  if (!disk.mounted())
    GTEST_SKIP() << "needs libfuse3, /dev/fuse and the right to mount";
  constexpr size_t requests = 30;
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  auto speed = static_cast<double>(GetParam());
  daemon_under_test daemon(with_disk_at(disk.path()));
  ASSERT_TRUE(daemon.await_log("joined"));
  auto with = replay(daemon, true, true, seed, requests);
  EXPECT_EQ(daemon.terminate(), 0);
  daemon_under_test memory_alone({.host_bytes = 16 * mebibyte});
  auto without = replay(memory_alone, true, false, seed, requests);
  EXPECT_LE(with.seconds(speed), 1.05 * without.seconds(speed) + static_cast<double>(trial_bytes) / speed)
      << with.read_bytes << " bytes read and " << with.computed << " chunks computed, without the disk "
      << without.computed;
  if (speed > 10 * 42e6) { // a fast disk is used for a part of the first prefix
    EXPECT_LE(with.computed, without.computed / 10);
  }
}

TEST(ThrottledDiskAlone, ThatIsSlowCostsAClientThatDeclaresNothing) {
  constexpr uint64_t speed = 12'000'000;
  throttled_mount disk(throttled_disk(), speed);
  if (!disk.mounted())
    GTEST_SKIP() << "needs libfuse3, /dev/fuse and the right to mount";
  daemon_under_test daemon(with_disk_at(disk.path()));
  ASSERT_TRUE(daemon.await_log("joined"));
  auto with = replay(daemon, false, true, 1, 6);
  EXPECT_EQ(with.computed, 0U);
  EXPECT_EQ(daemon.terminate(), 0);
  daemon_under_test memory_alone({.host_bytes = 16 * mebibyte});
  auto without = replay(memory_alone, false, false, 1, 6);
  EXPECT_GT(with.seconds(speed), 1.5 * without.seconds(speed));
}

INSTANTIATE_TEST_SUITE_P(Speeds, ThrottledDisk,
                         ::testing::Values(4'000'000, 20'000'000, 60'000'000, 1'000'000'000));

} // namespace
} // namespace terrace::e2e
