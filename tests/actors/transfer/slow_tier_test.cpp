// A third tier, below the disk: one mover, and one call that joins it.
#include "disk_fixture.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstring>
#include <map>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

/// Memory that is far away: payloads by offset.
using far_memory = std::map<uint64_t, std::vector<std::byte>>;

mover_actor::behavior_type slow_mover(mover_actor::pointer, const std::shared_ptr<far_memory>& far) {
  return {
      [far](const read_request& request) {
        move_answer answer;
        for (const moved_object& object : request.objects) {
          auto entry = far->find(object.place.offset);
          if (entry != far->end())
            std::memcpy(object.memory + object_header_bytes, entry->second.data(), entry->second.size());
          answer.outcomes.push_back(entry != far->end() ? move_outcome::done : move_outcome::failed);
        }
        return answer;
      },
      [far](const write_request& request) {
        move_answer answer;
        for (const moved_object& object : request.objects) {
          std::byte* begin = object.memory + object_header_bytes;
          (*far)[object.place.offset].assign(begin, begin + object.place.payload_bytes);
          answer.outcomes.push_back(move_outcome::done);
        }
        return answer;
      },
      [](register_memory) {},
      [](const add_memory&) {},
      [](const forget_memory&) { return retire_answer{}; },
      [](const close_mover_request&) { return close_mover_answer{}; },
  };
}

struct SlowTier : disk_fixture {
  std::shared_ptr<far_memory> far = std::make_shared<far_memory>();

  SlowTier() { begin(demotion_mode::write_through, demotion_mode::write_through); }
  void begin(demotion_mode of_disk, demotion_mode of_slow) {
    start({.host_objects = 16,
           .disk_objects = 64,
           .demotion = of_disk,
           .more_tiers = {{.kind = tier_kind::remote, .policy = "lru"}}});
    tier_handle below;
    below.kind = tier_kind::remote;
    below.demotion = of_slow;
    below.bytes = 128 * physical;
    below.mover = sys.spawn(slow_mover, far);
    auto space = make_space(below, below.bytes, 0).value();
    join_tier(sys, *group, std::move(below), {.space = std::move(space)});
    settle();
  }
  void begin_anew(demotion_mode of_disk, demotion_mode of_slow) {
    TearDown();
    folder.clear();
    far->clear();
    begin(of_disk, of_slow);
  }
  /// Two of these were used twice, and what the tiers below got of them is lost again.
  void evict_four_of_which_two_were_used() {
    EXPECT_EQ(store(0, 4).stored_chunks, 4u);
    EXPECT_EQ(load(0, 2).chunks, 2u);
    settle();
    for (const tier_actor& below : {disk_tier(), slow()})
      if (const size_t has = present(below, 0, 4); has != 0)
        forget(below, 0, has);
    store(100, 16);
    settle();
    EXPECT_EQ(present(group->host, 0, 4), 0u);
  }
  const tier_actor& slow() { return group->tier(tier_kind::remote)->tier; }
  /// On the slow tier and nowhere else.
  void on_slow(uint64_t first, size_t count) {
    EXPECT_EQ(store(first, count).stored_chunks, count);
    settle();
    forget_host(first, count);
    forget(disk_tier(), first, count);
  }
};

} // namespace

TEST_F(SlowTier, TakesItsPlaceBelowTheDisk) {
  ASSERT_EQ(group->tiers().size(), 3u);
  EXPECT_EQ(group->tiers()[0].kind, tier_kind::host);
  EXPECT_EQ(group->tiers()[1].kind, tier_kind::disk);
  EXPECT_EQ(group->tiers()[2].kind, tier_kind::remote);
}

TEST_F(SlowTier, GetsWhatIsStored) {
  store(0, 4);
  settle();
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
  EXPECT_EQ(present(slow(), 0, 4), 4u);
}

TEST_F(SlowTier, IsLookedUpWhereNoFasterTierHasIt) {
  on_slow(0, 6);
  load(0, 2); // two are in host memory again
  EXPECT_EQ(load(2, 1).chunks, 1u);
  forget_host(2, 1);
  auto found = lookup(chain(0, 6), true);
  EXPECT_EQ(found.plan.found_chunks, 6u);
  EXPECT_EQ(found.plan.chunk_tiers[0], tier_kind::host);
  EXPECT_EQ(found.plan.chunk_tiers[5], tier_kind::remote);
  ASSERT_NE(held_in(found.held, tier_kind::remote), nullptr);
  EXPECT_EQ(held_in(found.held, tier_kind::disk), nullptr);
}

TEST_F(SlowTier, IsLoadedFromAndTheRestFromTheDisk) {
  EXPECT_EQ(store(0, 6).stored_chunks, 6u);
  settle();
  forget_host(0, 6);
  forget(disk_tier(), 2, 2);
  auto loaded = load(0, 6);
  EXPECT_EQ(loaded.chunks, 6u);
  EXPECT_EQ(loaded.bytes_by_tier[static_cast<size_t>(tier_kind::disk)], 4 * payload);
  EXPECT_EQ(loaded.bytes_by_tier[static_cast<size_t>(tier_kind::remote)], 2 * payload);
  for (uint64_t n = 0; n < 6; ++n)
    EXPECT_TRUE(delivered(n)) << n;
}

TEST_F(SlowTier, DropsWhatItsMoverCannotRead) {
  on_slow(0, 3);
  far->erase(hold(slow(), 1, 1)->places()[0].offset);
  settle();
  EXPECT_EQ(load(0, 3).chunks, 1u);
  settle();
  EXPECT_EQ(present(slow(), 0, 3), 2u);
}

TEST_F(SlowTier, IsClearedAndGivesItsRoomBack) {
  on_slow(0, 4);
  EXPECT_EQ(clear(group->host).failure.code, errc::ok);
  auto cleared = clear(slow());
  EXPECT_EQ(cleared.objects, 4u);
  EXPECT_FALSE(cleared.missed);
  EXPECT_EQ(lookup(chain(0, 4)).plan.found_chunks, 0u);
  EXPECT_EQ(load(0, 4).chunks, 0u);
  EXPECT_EQ(report(slow()).usage.used_bytes, 0u);
}

TEST_F(SlowTier, ServesWhileTheDiskIsOutOfService) {
  EXPECT_EQ(store(0, 4).stored_chunks, 4u);
  settle();
  forget_host(0, 4);
  service->set(0, false, false, "away", [](bool) {});
  EXPECT_EQ(lookup(chain(0, 4)).plan.found_chunks, 4u);
  EXPECT_EQ(load(0, 4).chunks, 4u);
  EXPECT_TRUE(delivered(3));
}

TEST_F(SlowTier, GetsWhatIsEvictedBesideADiskThatGetsWhatWasUsed) {
  begin_anew(demotion_mode::selective, demotion_mode::write_back);
  evict_four_of_which_two_were_used();
  EXPECT_EQ(present(slow(), 0, 4), 4u);
  EXPECT_EQ(present(disk_tier(), 0, 2), 2u);
  EXPECT_EQ(present(disk_tier(), 2, 2), 0u);
  EXPECT_EQ(load(0, 4).chunks, 4u);
}

TEST_F(SlowTier, GetsWhatWasUsedBesideADiskThatGetsWhatIsEvicted) {
  begin_anew(demotion_mode::write_back, demotion_mode::selective);
  evict_four_of_which_two_were_used();
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
  EXPECT_EQ(present(slow(), 0, 2), 2u);
  EXPECT_EQ(present(slow(), 2, 2), 0u);
}

TEST_F(SlowTier, GetsWhatIsEvictedAsTheDiskDoes) {
  begin_anew(demotion_mode::write_back, demotion_mode::write_back);
  evict_four_of_which_two_were_used();
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
  EXPECT_EQ(present(slow(), 0, 4), 4u);
}
