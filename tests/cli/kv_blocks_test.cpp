// The blocks reported to routers, event by event, and against a model that computes them anew each time.
#include "cli/kv_event_batch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace terrace::cli {
namespace {

constexpr auto host = tier_kind::host, disk = tier_kind::disk;

digest digest_of(uint8_t byte) {
  digest made;
  made.bytes.fill(byte);
  return made;
}

client::event event_of(client::event_kind what, tier_kind tier, uint8_t byte, uint16_t pool = 0,
                       uint16_t rank = 0, uint32_t chunk_objects = 2) {
  client::event made;
  made.what = what;
  made.tier = tier;
  made.space = 1;
  made.pool = pool;
  made.rank = rank;
  made.chunk = digest_of(byte);
  made.chunk_objects = chunk_objects;
  return made;
}

constexpr auto admit = client::event_kind::admit, evict = client::event_kind::evict,
               demote = client::event_kind::demote, cleared = client::event_kind::clear;

struct KvBlocks : ::testing::Test {
  kv_blocks blocks;
  std::vector<block_change> told(const client::event& event) {
    std::vector<block_change> all;
    blocks.add(event, all);
    return all;
  }
  using changes = std::vector<block_change>;
};

TEST_F(KvBlocks, ABlockIsStoredWithTheLastOfItsRanksAndRemovedWithTheFirst) {
  EXPECT_EQ(told(event_of(admit, host, 1, 0, 0)), changes{});
  EXPECT_EQ(told(event_of(admit, host, 1, 0, 0)), changes{}); // a repeated event
  EXPECT_EQ(told(event_of(admit, host, 1, 0, 1)), (changes{{true, host, digest_of(1)}}));
  EXPECT_EQ(told(event_of(admit, host, 1, 0, 1)), changes{});
  EXPECT_EQ(told(event_of(evict, host, 1, 0, 0)), (changes{{false, host, digest_of(1)}}));
  EXPECT_EQ(told(event_of(evict, host, 1, 0, 1)), changes{});
  EXPECT_EQ(blocks.chunks(), 0u);
  EXPECT_EQ(told(event_of(admit, host, 1, 0, 1)), changes{});
  EXPECT_EQ(told(event_of(admit, host, 1, 0, 0)), (changes{{true, host, digest_of(1)}}));
  EXPECT_EQ(told(event_of(cleared, host, 1, 0, 1)), (changes{{false, host, digest_of(1)}}));
}

TEST_F(KvBlocks, PoolsCountAsRanksDo) {
  EXPECT_EQ(told(event_of(admit, host, 1, 0, 0)), changes{});
  EXPECT_EQ(told(event_of(admit, host, 1, 3, 0)), (changes{{true, host, digest_of(1)}}));
}

TEST_F(KvBlocks, AChunkInTwoTiersTogetherIsInTheSlowerOne) {
  told(event_of(admit, host, 1, 0, 0));
  told(event_of(admit, host, 1, 0, 1));
  EXPECT_EQ(told(event_of(admit, disk, 1, 0, 0)), changes{}); // the disk has one of two objects
  EXPECT_EQ(told(event_of(demote, host, 1, 0, 0)),
            (changes{{true, disk, digest_of(1)}, {false, host, digest_of(1)}}));
  EXPECT_EQ(told(event_of(admit, disk, 1, 0, 1)), changes{});
  EXPECT_EQ(told(event_of(evict, host, 1, 0, 1)), changes{});
  EXPECT_EQ(told(event_of(evict, disk, 1, 0, 1)), (changes{{false, disk, digest_of(1)}}));
}

TEST_F(KvBlocks, TheStoresOfAGroupAreOneToSubscribers) {
  blocks = kv_blocks(true);
  for (uint32_t objects : {1U, 2U}) {
    const auto rest = [&](client::event_kind what, tier_kind tier) { // its other object, if there is one
      return objects == 1 ? changes{} : told(event_of(what, tier, 1, 0, 1, objects));
    };
    EXPECT_EQ(rest(admit, tier_kind::remote2), changes{});
    EXPECT_EQ(told(event_of(admit, tier_kind::remote2, 1, 0, 0, objects)),
              (changes{{true, tier_kind::remote, digest_of(1)}}));
    EXPECT_EQ(rest(admit, tier_kind::remote), changes{});
    EXPECT_EQ(told(event_of(admit, tier_kind::remote, 1, 0, 0, objects)), changes{});
    EXPECT_EQ(told(event_of(evict, tier_kind::remote2, 1, 0, 0, objects)), changes{});
    EXPECT_EQ(rest(evict, tier_kind::remote2), changes{});
    EXPECT_EQ(told(event_of(evict, tier_kind::remote, 1, 0, 0, objects)),
              (changes{{false, tier_kind::remote, digest_of(1)}}));
    EXPECT_EQ(rest(evict, tier_kind::remote), changes{});
    EXPECT_EQ(blocks.chunks(), 0u);
  }
}

TEST_F(KvBlocks, ChunksOfOneObjectNeedNoMemory) {
  EXPECT_EQ(told(event_of(admit, host, 1, 0, 0, 1)), (changes{{true, host, digest_of(1)}}));
  EXPECT_EQ(told(event_of(evict, host, 1, 0, 0, 1)), (changes{{false, host, digest_of(1)}}));
  EXPECT_EQ(blocks.chunks(), 0u);
}

TEST_F(KvBlocks, ObjectsThatAreNotNeededOfEachChunkAreNotTold) {
  EXPECT_EQ(told(event_of(admit, host, 1, 1, 0, 0)), changes{});
  EXPECT_EQ(blocks.chunks(), 0u);
}

TEST_F(KvBlocks, TheRemoteTierIsToldIfAskedFor) {
  constexpr auto remote = tier_kind::remote;
  EXPECT_EQ(told(event_of(admit, remote, 1, 0, 0, 1)), changes{});
  told(event_of(admit, host, 2, 0, 0));
  EXPECT_EQ(told(event_of(admit, remote, 2, 0, 1)), changes{}) << "the machine itself has half of it";
  EXPECT_EQ(told(event_of(admit, host, 2, 0, 1)), (changes{{true, host, digest_of(2)}}));
  blocks = kv_blocks(true);
  EXPECT_EQ(told(event_of(admit, remote, 1, 0, 0, 1)), (changes{{true, remote, digest_of(1)}}));
  told(event_of(admit, host, 2, 0, 0));
  EXPECT_EQ(told(event_of(admit, remote, 2, 0, 1)), (changes{{true, remote, digest_of(2)}}));
  EXPECT_EQ(told(event_of(evict, remote, 2, 0, 1)), (changes{{false, remote, digest_of(2)}}));
}

TEST_F(KvBlocks, ASnapshotBeginsAnew) {
  told(event_of(admit, host, 1, 0, 0));
  blocks.clear();
  EXPECT_EQ(told(event_of(admit, host, 1, 0, 1)), changes{});
}

TEST_F(KvBlocks, RouterAndTiersAgreeAtAnyTime) {
  std::mt19937 random(5);
  constexpr uint16_t ranks = 3;
  std::map<std::tuple<uint8_t, uint16_t>, std::set<tier_kind>> objects;
  std::set<std::pair<uint8_t, tier_kind>> router;
  for (int step = 0; step < 20'000; ++step) {
    auto chunk = static_cast<uint8_t>(random() % 4);
    auto rank = static_cast<uint16_t>(random() % ranks);
    tier_kind tier = random() % 2 == 0 ? host : disk;
    bool comes = random() % 2 == 0;
    if (comes)
      objects[{chunk, rank}].insert(tier);
    else
      objects[{chunk, rank}].erase(tier);
    for (const block_change& change : told(event_of(comes ? admit : evict, tier, chunk, 0, rank, ranks))) {
      std::pair block(change.chunk.bytes[0], change.tier);
      ASSERT_EQ(change.stored ? router.insert(block).second : router.erase(block) != 0, true) << step;
    }
    for (uint8_t each = 0; each < 4; ++each) {
      bool on_host = true, on_disk = true, together = true;
      for (uint16_t of = 0; of < ranks; ++of) {
        const auto& in = objects[{each, of}];
        on_host = on_host && in.count(host) != 0;
        on_disk = on_disk && in.count(disk) != 0;
        together = together && !in.empty();
      }
      ASSERT_EQ(router.count({each, host}) != 0, on_host) << step;
      ASSERT_EQ(router.count({each, disk}) != 0, on_disk || (together && !on_host)) << step;
    }
  }
}

} // namespace
} // namespace terrace::cli
