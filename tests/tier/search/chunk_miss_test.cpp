#include "tier/search/chunk_miss.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

using namespace terrace;

namespace chunk_miss_test {

uint32_t now = 0;

struct ChunkMiss : ::testing::Test {
  departure_log log{[] { return now; }};
  space_ptr space = make_space();
  digest chunk{};
  std::vector<chunk_examiner::place> places = std::vector<chunk_examiner::place>(8);

  ChunkMiss() {
    now = 100;
    chunk.bytes[0] = 1;
  }
  /// Two ranks; a pool that all chunks need, one that is replicated, and one of states that only the end of a prefix needs.
  static space_ptr make_space() {
    opened_space made;
    made.id = space_id{3};
    made.spec.world_size = 2;
    made.spec.pools = {{.name = "kv", .object_bytes = 4096},
                       {.name = "latent", .object_bytes = 4096, .replicated = true},
                       {.name = "state", .object_bytes = 4096, .rule = hit_rule::trailing_chunks}};
    return std::make_shared<const opened_space>(std::move(made));
  }
  std::optional<chunk_miss> examine() const {
    return chunk_examiner(space, log).examine(chunk, [&](uint32_t object) { return places.at(object); });
  }
  void left(uint32_t object, miss_reason why) {
    log.add(to_entry_key(chunk_layout(space->spec).key(space->id, chunk, object)), tier_kind::host, why);
  }
  void is_there(uint32_t object) { places.at(object) = {tier_kind::host, true}; }
};

TEST_F(ChunkMiss, NothingIsMissingIfAllThatAPrefixNeedsIsThere) {
  EXPECT_EQ(chunk_examiner(space, log).needed(), (std::vector<uint32_t>{0, 1, 2}));
  for (uint32_t object : {0u, 1u, 2u})
    is_there(object);
  EXPECT_FALSE(examine());
}

TEST_F(ChunkMiss, NotStoredIfNothingIsKnown) {
  EXPECT_EQ(examine(), (chunk_miss{.why = miss_reason::not_stored}));
}

TEST_F(ChunkMiss, IncompleteIfOthersOfTheChunkAreThere) {
  is_there(0);
  is_there(2);
  EXPECT_EQ(examine(), (chunk_miss{.why = miss_reason::incomplete, .object = 1}));
  EXPECT_EQ(chunk_examiner(space, log).name_of(1), "rank 1 of pool kv");
  EXPECT_EQ(chunk_examiner(space, log).name_of(2), "pool latent");
}

TEST_F(ChunkMiss, TheReasonOfTheLatestDeparture) {
  left(0, miss_reason::evicted);
  now += 10;
  left(2, miss_reason::cleared);
  now += 5;
  EXPECT_EQ(examine(), (chunk_miss{miss_reason::cleared, tier_kind::host, 5, 2}));
  is_there(2);
  EXPECT_EQ(examine(), (chunk_miss{miss_reason::evicted, tier_kind::host, 15, 0}))
      << "it is known, so not incomplete";
}

TEST_F(ChunkMiss, NotAdmittedIfATierBelowDidNotTakeIt) {
  log.add_refusal(to_entry_key(chunk_layout(space->spec).key(space->id, chunk, 0)), tier_kind::disk,
                  refusal_reason::second_use);
  left(0, miss_reason::evicted);
  is_there(1);
  is_there(2);
  EXPECT_EQ(examine(), (chunk_miss{.why = miss_reason::not_admitted,
                                   .from = tier_kind::disk,
                                   .refused = refusal_reason::second_use}));
  is_there(0);
  EXPECT_FALSE(examine()) << "it is there";
}

TEST_F(ChunkMiss, OutOfServiceIfItsTierCannotBeRead) {
  is_there(0);
  is_there(1);
  places[2] = {tier_kind::disk, false};
  EXPECT_EQ(examine(),
            (chunk_miss{.why = miss_reason::out_of_service, .from = tier_kind::disk, .object = 2}));
}

TEST_F(ChunkMiss, APoolThatNoChunkNeedsAloneCountsIfThereIsNoOther) {
  auto states = std::make_shared<opened_space>();
  states->spec.pools = {{.name = "state", .object_bytes = 4096, .rule = hit_rule::trailing_chunks}};
  EXPECT_EQ(chunk_examiner(states, log).needed(), std::vector<uint32_t>{0});
}

} // namespace chunk_miss_test
