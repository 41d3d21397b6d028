// A tier faster than host memory: what it evicts comes back to host memory if no tier below has it.
#include "fast_tier_fixture.hpp"
#include "tests/support/seed.hpp"

#include <random>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {
struct GiveBack : fast_tier_fixture {
  void use(uint64_t first, size_t count) {
    auto used = ask<probe_answer>(gpu(), probe_request{chain(first, count, payload), false, true});
    settle();
  }
};
} // namespace

TEST_F(GiveBack, WhatNoTierBelowHasComesToHostMemory) {
  begin(demotion_mode::write_back);
  only_there(0, 4);
  EXPECT_EQ(store(100, 4).stored_chunks, 4u);
  promote(100, 4);
  EXPECT_EQ(present(gpu(), 100, 4), 4u);
  EXPECT_EQ(present(gpu(), 0, 4), 0u);
  EXPECT_EQ(present(group->host, 0, 4), 4u);
  EXPECT_EQ(load(0, 4).chunks, 4u);
  for (uint64_t n = 0; n < 4; ++n)
    EXPECT_TRUE(delivered(n)) << n;
  EXPECT_EQ(counted("terrace_tier_demoted_total"), 4);
  EXPECT_EQ(counted("terrace_tier_demoted_bytes_total"), 4 * payload);
}

TEST_F(GiveBack, WhatHostMemoryHasIsNotCopied) {
  begin(demotion_mode::write_back);
  store(0, 4);
  promote(0, 4);
  store(100, 4);
  promote(100, 4);
  EXPECT_EQ(present(gpu(), 100, 4), 4u);
  EXPECT_EQ(fast->reads, 0u);
}

TEST_F(GiveBack, HostMemoryMakesRoomForIt) {
  begin(demotion_mode::write_back);
  only_there(0, 4);
  EXPECT_EQ(store(100, 8).stored_chunks, 8u) << "it is full";
  promote(100, 4);
  EXPECT_EQ(present(gpu(), 100, 4), 4u);
  EXPECT_EQ(present(group->host, 0, 4), 4u) << "what comes first does not make room for the rest";
  EXPECT_EQ(present(group->host, 100, 8), 4u);
}

TEST_F(GiveBack, NothingWaitsForHostMemoryThatHasNoRoom) {
  begin(demotion_mode::write_back);
  only_there(0, 4);
  EXPECT_EQ(store(100, 8).stored_chunks, 8u);
  auto held = hold(group->host, 100, 8);
  promote(100, 4);
  EXPECT_EQ(present(gpu(), 100, 4), 4u) << "the victims are dropped";
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(counted("terrace_tier_demotions_failed_total"), 4);
}

// What waits for host memory may wait for what a promotion holds there, which waits for room in the tier.
TEST_F(GiveBack, DoesNotWaitBehindAStoreThatWaits) {
  begin(demotion_mode::write_back);
  only_there(0, 4);
  EXPECT_EQ(store(100, 8).stored_chunks, 8u);
  auto held = hold(group->host, 100, 4);
  auto promoted = hold(group->host, 104, 4);
  auto stored = begin_store(200, 1);
  settle();
  EXPECT_FALSE(*stored);
  caf::anon_send(parts().write_through,
                 write_through_notice{in, chain(104, 4, payload), std::move(promoted), {}});
  settle();
  EXPECT_EQ(present(gpu(), 104, 4), 4u);
  ASSERT_TRUE(*stored) << "the promotion holds nothing any more";
  EXPECT_EQ((*stored)->stored_chunks, 1u);
}

TEST_F(GiveBack, AVictimThatIsUsedMeanwhileStays) {
  begin(demotion_mode::write_back);
  only_there(0, 4);
  store(100, 1);
  fast->gated = true;
  promote(100, 1);
  EXPECT_EQ(present(gpu(), 0, 4), 4u) << "a victim is found until it is written";
  auto used = hold(gpu(), 3, 1);
  ASSERT_TRUE(used->places()[0].present());
  let_go();
  EXPECT_EQ(present(gpu(), 0, 4), 4u);
  EXPECT_EQ(present(group->host, 3, 1), 1u) << "it was written meanwhile";
  EXPECT_EQ(present(gpu(), 100, 1), 0u) << "the ancestors of a victim that stays may not leave";
}

TEST_F(GiveBack, WhatIsClearedMeanwhileDoesNotComeBack) {
  begin(demotion_mode::write_back);
  only_there(0, 4);
  store(100, 4);
  fast->gated = true;
  promote(100, 4);
  clear(group->host);
  clear(gpu());
  let_go();
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(present(gpu(), 0, 4), 0u);
  EXPECT_EQ(host_used(), 0u) << "no reservation is left";
}

TEST_F(GiveBack, WhatCannotBeReadIsDroppedAndTheRestComes) {
  begin(demotion_mode::write_back);
  only_there(0, 4);
  fast->at.erase(hold(gpu(), 1, 1)->places()[0].offset);
  settle();
  store(100, 4);
  uint64_t before = host_used();
  promote(100, 4);
  EXPECT_EQ(present(gpu(), 100, 4), 4u);
  EXPECT_EQ(present(group->host, 0, 4), 3u);
  EXPECT_EQ(host_used(), before + 3 * physical);
  EXPECT_EQ(counted("terrace_tier_demotions_failed_total"), 1);
}

TEST_F(GiveBack, OffMeansThatItIsLost) {
  begin(demotion_mode::off);
  only_there(0, 4);
  store(100, 4);
  promote(100, 4);
  EXPECT_EQ(present(gpu(), 100, 4), 4u);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(fast->reads, 0u);
}

TEST_F(GiveBack, SelectiveMeansAtTheSecondUse) {
  begin(demotion_mode::selective);
  only_there(0, 4);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  use(1, 1);
  EXPECT_EQ(present(group->host, 0, 4), 1u);
  EXPECT_EQ(present(gpu(), 0, 4), 4u);
}

TEST_F(GiveBack, WhatFindsNoCreditComesAtAUseAfterThose) {
  begin(demotion_mode::selective);
  only_there(0, 4);
  fast->gated = true;
  use(0, 4);
  EXPECT_EQ(fast->waiting.size(), 2u) << "half of the tier";
  use(0, 4);
  EXPECT_EQ(fast->waiting.size(), 2u);
  let_go();
  EXPECT_EQ(present(group->host, 0, 4), 2u) << "the second use came while they were copied";
  EXPECT_EQ(counted("terrace_tier_demoted_total"), 2);
  EXPECT_EQ(counted("terrace_tier_demotions_failed_total"), 2);
  use(0, 4);
  EXPECT_EQ(present(group->host, 0, 4), 4u);
  EXPECT_EQ(counted("terrace_tier_demoted_total"), 4);
}

TEST_F(GiveBack, WhatHostMemoryLosesAfterItsSecondUseComesAsItIsEvicted) {
  begin(demotion_mode::selective);
  store(0, 4);
  promote(0, 4);
  use(0, 4);
  EXPECT_EQ(fast->reads, 0u) << "it is there";
  forget_host(0, 4);
  use(0, 4);
  EXPECT_EQ(fast->reads, 0u) << "a use looks once";
  EXPECT_EQ(store(100, 4).stored_chunks, 4u);
  promote(100, 4);
  EXPECT_EQ(present(gpu(), 100, 4), 4u);
  EXPECT_EQ(present(gpu(), 0, 4), 0u);
  EXPECT_EQ(load(0, 4).chunks, 4u);
  for (uint64_t n = 0; n < 4; ++n)
    EXPECT_TRUE(delivered(n)) << n;
  EXPECT_EQ(counted("terrace_tier_demoted_total"), 4);
}

TEST_F(GiveBack, WhatHostMemoryLosesAfterItWasCopiedComesAgain) {
  begin(demotion_mode::selective);
  only_there(0, 4);
  use(0, 2);
  EXPECT_EQ(present(group->host, 0, 4), 2u);
  forget_host(0, 2);
  store(100, 4);
  promote(100, 4);
  EXPECT_EQ(present(gpu(), 100, 4), 4u);
  EXPECT_EQ(present(group->host, 0, 4), 2u) << "what was not used is lost";
  EXPECT_EQ(counted("terrace_tier_demoted_total"), 4);
}

TEST_F(GiveBack, WhatFoundNoCreditComesAsItIsEvictedAtTheLatest) {
  begin(demotion_mode::selective);
  only_there(0, 4);
  fast->gated = true;
  use(0, 4);
  let_go();
  EXPECT_EQ(present(group->host, 0, 4), 2u) << "half of the tier";
  store(100, 4);
  promote(100, 4);
  EXPECT_EQ(present(gpu(), 100, 4), 4u);
  EXPECT_EQ(present(group->host, 0, 4), 4u);
}

TEST_F(GiveBack, WhatWasUsedIsDroppedIfHostMemoryHasNoRoom) {
  begin(demotion_mode::selective);
  only_there(0, 4);
  use(0, 2);
  forget_host(0, 2);
  EXPECT_EQ(store(100, 8).stored_chunks, 8u);
  auto held = hold(group->host, 100, 8);
  promote(100, 4);
  EXPECT_EQ(present(gpu(), 100, 4), 4u);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(counted("terrace_tier_demotions_failed_total"), 2);
}

TEST_F(GiveBack, WhatWasNotUsedIsLostIfItIsSelective) {
  begin(demotion_mode::selective);
  only_there(0, 4);
  store(100, 4);
  promote(100, 4);
  EXPECT_EQ(present(gpu(), 100, 4), 4u);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(fast->reads, 0u);
}

TEST_F(GiveBack, WhatTheDiskHasIsDropped) {
  begin(demotion_mode::write_back, {.host_objects = 8, .disk_objects = 32});
  only_there(0, 4);
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u) << "it was written through";
  store(100, 4);
  promote(100, 4);
  EXPECT_EQ(present(gpu(), 100, 4), 4u);
  EXPECT_EQ(fast->reads, 0u);
  EXPECT_EQ(load(0, 4).chunks, 4u);
}

TEST_F(GiveBack, ADiskOutOfServiceDoesNotCount) {
  begin(demotion_mode::write_back, {.host_objects = 8, .disk_objects = 32});
  only_there(0, 4);
  service->set(0, false, false, "away", [](bool) {});
  store(100, 4);
  promote(100, 4);
  EXPECT_EQ(present(group->host, 0, 4), 4u);
}

TEST_F(GiveBack, WhatComesBackIsWrittenThrough) {
  begin(demotion_mode::write_back, {.host_objects = 8, .disk_objects = 32});
  only_there(0, 4);
  forget(disk_tier(), 0, 4);
  store(100, 4);
  promote(100, 4);
  EXPECT_EQ(present(group->host, 0, 4), 4u);
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
}

TEST_F(GiveBack, AtTheEndEverythingIsWrittenDown) {
  begin(demotion_mode::write_back,
        {.host_objects = 8, .disk_objects = 32, .demotion = demotion_mode::write_back});
  only_there(0, 4);
  EXPECT_EQ(present(disk_tier(), 0, 4), 0u);
  for (const tier_actor& tier : {gpu(), group->host}) {
    auto down = ask<write_down_answer>(
        tier, write_down_request{std::chrono::steady_clock::now() + std::chrono::hours(1)});
    settle();
    ASSERT_TRUE(*down && (*down)->complete);
  }
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
}

TEST_F(GiveBack, WhateverHappensTheBytesAreRightAndNothingIsLeftHeld) {
  uint64_t seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t n) { return random() % n; };
  begin(demotion_mode::write_back, {.host_objects = 12, .disk_objects = 24});
  std::vector<hold_ptr> held;
  std::vector<box<store_result>> stored;
  uint64_t loaded = 0;
  for (int step = 0; step < 600; ++step) {
    uint64_t first = below(6) * 10, count = 1 + below(4);
    switch (below(8)) {
      case 0:
      case 1: stored.push_back(begin_store(first, count)); break;
      case 2:
        fast->gated = below(2) == 0;
        promote(first, count);
        if (below(4) == 0)
          clear(below(2) == 0 ? gpu() : group->host);
        let_go();
        break;
      case 3: {
        auto done = load(first, count);
        for (uint64_t n = first; n < first + done.chunks; ++n)
          EXPECT_TRUE(delivered(n)) << n << " in step " << step;
        loaded += done.chunks;
        break;
      }
      case 4: held.push_back(hold(below(2) == 0 ? gpu() : group->host, first, 1)); break;
      case 5:
      case 6: // perhaps only the faster tier has it then
        promote(first, count);
        for (const tier_actor& tier : {group->host, disk_tier()})
          if (below(8) != 0 && present(tier, first, count) != 0)
            forget(tier, first, count);
        break;
      default:
        if (!fast->at.empty() && below(8) == 0)
          fast->at.erase(fast->at.begin());
    }
    settle();
    if (held.size() > 2)
      held.clear();
    settle();
  }
  held.clear();
  settle();
  EXPECT_GT(loaded, 50u);
  EXPECT_GT(counted("terrace_tier_demoted_total"), 5);
  for (const auto& each : stored)
    EXPECT_TRUE(*each) << "a store waits for ever";
  for (const tier_actor& tier : {gpu(), group->host, disk_tier()}) {
    auto now = report(tier);
    EXPECT_EQ(now.held_objects, 0u);
    EXPECT_EQ(now.waiting, 0u);
    EXPECT_EQ(now.usage.used_bytes, now.objects * physical) << "reserved space has been given back";
  }
}
