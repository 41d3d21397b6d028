// Random histories that end in crashes, again and again on the same volume. The checks are in modelled_volume: every
// object that is found verifies or is a miss, no cleared object comes back, extents are exact.
#include "modelled_volume.hpp"

#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

struct history {
  int steps = 400;
  double io = 0.4;     ///< share of the steps in which the disk makes progress
  double io_fails = 0; ///< share of its operations
  double clears = 0.004;
  double checkpoints = 0.05;
};

void live(modelled_volume& volume, const history& how) {
  auto& dice = volume.dice();
  std::uniform_real_distribution<double> chance;
  for (int step = 0; step < how.steps; ++step) {
    double what = chance(dice);
    if (what < how.io) {
      volume.begin_io();
      if (chance(dice) < 0.8)
        volume.complete_io(chance(dice) >= how.io_fails);
      continue;
    }
    what = chance(dice);
    auto space = 1 + static_cast<uint32_t>(dice() % modelled_volume::spaces);
    if (what < how.clears)
      volume.clear(dice() % 4 == 0 ? std::nullopt : std::optional(space));
    else if (what < how.clears + how.checkpoints || volume.journal().checkpoint_due())
      volume.checkpoint_step(1 + dice() % 30);
    else if (what < 0.75)
      volume.store(space, dice() % 120);
    else
      volume.evict();
  }
}

void crash_often(uint64_t seed, int volumes, int lives, const history& how,
                 const simulated_device::crash_faults& faults) {
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 seeds(seed);
  size_t intact = 0;
  for (int s = 0; s < volumes && !::testing::Test::HasFailure(); ++s) {
    modelled_volume volume(seeds());
    for (int l = 0; l < lives; ++l) {
      live(volume, how);
      intact += volume.restart(faults);
    }
  }
  EXPECT_GT(intact, 0U) << "a test in which nothing survives shows nothing";
}

const uint64_t seed = test::test_seed();

TEST(Crash, DeathOfTheProcessLosesOnlyWhatWasNotWritten) { crash_often(seed, 60, 8, {.checkpoints = 0}, {}); }

TEST(Crash, DeathOfTheProcessWhileCheckpointsAreTaken) { crash_often(seed, 60, 8, {.checkpoints = 0.2}, {}); }

TEST(Crash, PowerCutsLoseAndTearBlocks) { crash_often(seed, 60, 8, {}, {.lost = 0.3, .torn = 0.2}); }

TEST(Crash, PowerCutsThatLoseAllThatWasNotSynced) {
  crash_often(seed, 60, 8, {.checkpoints = 0.2}, {.lost = 1});
}

TEST(Crash, DevicesThatFailNowAndThen) {
  crash_often(seed, 60, 8, {.io_fails = 0.2, .checkpoints = 0.2}, {.lost = 0.3, .torn = 0.2});
}

TEST(Crash, DevicesThatAreTooSlow) { crash_often(seed, 40, 8, {.steps = 1500, .io = 0.02}, {.lost = 0.5}); }

TEST(Crash, JournalsThatComeAroundManyTimes) {
  crash_often(seed, 20, 5, {.steps = 4000, .io = 0.7, .clears = 0, .checkpoints = 0.3}, {});
}

TEST(Crash, FlippedBitsInTheMetadataCostObjectsAndNeverBytes) {
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 seeds(seed);
  for (int s = 0; s < 60 && !HasFailure(); ++s) {
    modelled_volume volume(seeds());
    for (int l = 0; l < 6; ++l) {
      live(volume, {});
      uint64_t end = volume.journal().block().layout.extents_begin;
      // One superblock stays, because a volume without any is refused.
      for (int flips = 0; flips < 20; ++flips)
        volume.device().flip_bit(8 * superblock_bytes + volume.dice()() % (8 * (end - superblock_bytes)));
      volume.restart({.lost = 0.1});
    }
  }
}

TEST(Crash, UnreadableBlocksCostTheirObjects) {
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 seeds(seed);
  for (int s = 0; s < 100 && !HasFailure(); ++s) {
    modelled_volume volume(seeds());
    live(volume, {.checkpoints = 0.2});
    const auto& layout = volume.journal().block().layout;
    volume.device().make_unreadable(layout.journal_begin);
    for (int blocks = 0; blocks < 5; ++blocks)
      volume.device().make_unreadable(layout.journal_begin +
                                      volume.dice()() % (layout.extents_begin - layout.journal_begin));
    volume.restart();
    EXPECT_GT(volume.found().damaged_blocks, 0U);
  }
}

TEST(Crash, AnOrderlyEndLosesNothing) {
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 seeds(seed);
  for (int s = 0; s < 50 && !HasFailure(); ++s) {
    modelled_volume volume(seeds());
    for (int l = 0; l < 3; ++l) {
      live(volume, {.clears = 0});
      volume.shut_down();
      size_t before = volume.objects();
      EXPECT_EQ(volume.restart({.lost = 1}), before) << "the checkpoint was durable";
      EXPECT_EQ(volume.objects(), before);
    }
  }
}

} // namespace
} // namespace terrace
