// A move brings the chunks of a prompt to the disk tier, and has them leave the tiers above.
#include "actors/transfer/transfer_actors.hpp"
#include "fast_tier_fixture.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

struct Moves : fast_tier_fixture {
  static constexpr demotion_mode off = demotion_mode::off;

  box<move_result> begin_move(uint64_t first, size_t count, bool stays = false, context_ptr of = nullptr) {
    auto chunks = std::make_shared<std::vector<digest>>();
    for (uint64_t n = first; n < first + count; ++n)
      chunks->push_back(terrace::test::key_of(n).chunk);
    return ask<move_result>(spawn_move(sys), move_job{group, tier_kind::disk, in, std::move(chunks),
                                                      std::nullopt, std::move(of), stays});
  }
  move_result move(uint64_t first, size_t count, bool stays = false) {
    auto answer = begin_move(first, count, stays);
    settle();
    EXPECT_TRUE(*answer) << "the move was not answered";
    return answer->value_or(move_result{{errc::internal, "no answer"}, {}});
  }
};

} // namespace

TEST_F(Moves, WhatIsWrittenDownLeavesHostMemory) {
  start({.host_objects = 8, .disk_objects = 16, .demotion = off});
  store(0, 4);
  auto moved = move(0, 4);
  EXPECT_EQ(moved.failure.code, errc::ok) << moved.failure.text;
  EXPECT_EQ(moved.sum.requested, 4u);
  EXPECT_EQ(moved.sum.moved.chunks, 4u);
  EXPECT_EQ(moved.sum.moved.bytes, 4 * payload);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
  EXPECT_EQ(report(group->host).held_objects, 0u);
  EXPECT_EQ(move(0, 4).sum.present.chunks, 4u) << "they are there already";
}

TEST_F(Moves, WhatIsToStayIsWrittenDownAndStays) {
  start({.host_objects = 8, .disk_objects = 16, .demotion = off});
  store(0, 2);
  EXPECT_EQ(move(0, 2, true).sum.held.chunks, 2u);
  EXPECT_EQ(present(group->host, 0, 2), 2u);
  EXPECT_EQ(present(disk_tier(), 0, 2), 2u);
}

TEST_F(Moves, PartAfterPart) {
  start({.host_objects = 8, .disk_objects = 16, .window_objects = 2, .demotion = off});
  store(0, 7);
  EXPECT_EQ(move(0, 7).sum.moved.chunks, 7u);
  EXPECT_EQ(present(group->host, 0, 7), 0u);
}

TEST_F(Moves, WhatOnlyTheFasterTierHasGoesThroughHostMemory) {
  begin(demotion_mode::write_back, {.host_objects = 8, .disk_objects = 16, .demotion = off});
  only_there(0, 4);
  auto moved = move(0, 4);
  EXPECT_EQ(moved.sum.moved.chunks, 4u);
  EXPECT_EQ(present(gpu(), 0, 4), 0u);
  EXPECT_EQ(present(group->host, 0, 4), 0u);
  EXPECT_EQ(present(disk_tier(), 0, 4), 4u);
}

TEST_F(Moves, ARequestThatHasEndedMovesNothing) {
  start({.host_objects = 8, .disk_objects = 16, .demotion = off});
  store(0, 2);
  auto answer = begin_move(0, 2, false, terrace::test::ended(errc::cancelled));
  settle();
  EXPECT_EQ((*answer)->failure.code, errc::cancelled);
  EXPECT_EQ(present(group->host, 0, 2), 2u);
}

TEST_F(Moves, WithoutWhoWritesTheChunksFailAndStay) {
  start({.host_objects = 8, .disk_objects = 16, .demotion = off});
  store(0, 2);
  stop(group->disk()->write_through);
  EXPECT_EQ(move(0, 2).sum.failed.chunks, 2u);
  EXPECT_EQ(present(group->host, 0, 2), 2u);
  EXPECT_EQ(report(group->host).held_objects, 0u);
}

TEST_F(Moves, ATierThatHasEndedIsAnError) {
  start({.host_objects = 8, .disk_objects = 16, .demotion = off});
  store(0, 2);
  stop(disk_tier());
  auto moved = move(0, 2);
  EXPECT_EQ(moved.failure.code, errc::internal);
  EXPECT_NE(moved.failure.text.find("tier"), std::string::npos) << moved.failure.text;
}

TEST_F(Moves, NeedNoCredit) {
  start({.host_objects = 8, .disk_objects = 16, .demotion = off});
  store(0, 2);
  const write_through_actor& writes = group->disk()->write_through;
  auto all = ask<write_credit_answer>(writes, write_credit_request{4 * physical, nullptr});
  settle();
  ASSERT_TRUE(*all && (*all)->credit);
  demote_request at_a_credit{in, chain(0, 2, payload), hold(group->host, 0, 2), demotion_turn::if_credit};
  auto refused = ask<demote_answer>(writes, std::move(at_a_credit));
  settle();
  ASSERT_TRUE(*refused);
  EXPECT_EQ((*refused)->done.lost[static_cast<size_t>(refusal_reason::no_room)], 2u);
  EXPECT_EQ(move(0, 2).sum.moved.chunks, 2u);
}
