#include "connection/reading_gate.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using protocol::kind;

namespace {

struct ReadingGate : ::testing::Test {
  std::shared_ptr<request_memory> group = std::make_shared<request_memory>(1'000'000);
  request_table requests{connection_id{1}, {2, 1'000'000, std::chrono::seconds(30)}};
  reading_gate gate{connection_id{1}, group};
  int woken = 0;

  void SetUp() override {
    gate.on_room([this] { ++woken; });
  }
  bool may(kind which, uint32_t bytes = 64) {
    protocol::frame_header next;
    next.kind = which;
    next.length = bytes;
    return gate.may_continue(next, requests);
  }
  void begin(request_id id) { requests.begin(id, kind::lookup, 100, {}); }
};

} // namespace

TEST_F(ReadingGate, WithoutCreditOnlyWhatGivesBackIsRead) {
  begin(1);
  EXPECT_TRUE(may(kind::lookup));
  begin(2);
  EXPECT_FALSE(may(kind::lookup));
  EXPECT_TRUE(may(kind::release));
}

TEST_F(ReadingGate, NothingIsReadUntilOtherActorsHaveReadWhatTheyWereSent) {
  gate.sent_without_credit();
  EXPECT_FALSE(may(kind::lookup));
  EXPECT_FALSE(may(kind::release));
  gate.read_without_credit();
  EXPECT_TRUE(may(kind::lookup));
}

TEST_F(ReadingGate, ARequestOfUnknownCostIsWaitedFor) {
  gate.cost_unknown();
  EXPECT_FALSE(may(kind::lookup));
  EXPECT_TRUE(may(kind::release));
  gate.cost_known();
  EXPECT_TRUE(may(kind::lookup));
}

TEST_F(ReadingGate, WaitsForRoomInTheGroupAndIsWoken) {
  group->change(0, 2'000'000);
  EXPECT_TRUE(gate.group_is_full());
  EXPECT_TRUE(may(kind::lookup)) << "a small one beside no other of its connection";
  begin(1);
  EXPECT_FALSE(may(kind::lookup));
  EXPECT_TRUE(may(kind::release));
  group->change(2'000'000, 0);
  EXPECT_EQ(woken, 1);
  EXPECT_TRUE(may(kind::lookup));
}

TEST_F(ReadingGate, AFrameThatBeganToArriveStaysIn) {
  begin(1);
  auto change = gate.account(100, 5'000);
  EXPECT_EQ(change.before, 0u);
  EXPECT_EQ(change.now, 5'100u);
  EXPECT_EQ(group->bytes(), 5'100u);
  gate.cost_unknown();
  EXPECT_TRUE(may(kind::store, 5'000));
  EXPECT_FALSE(may(kind::store, 6'000));
  gate.account(0, 0);
  EXPECT_EQ(group->bytes(), 0u);
}

TEST_F(ReadingGate, KnowsWhetherItStandsInTheLineForRoom) {
  group->change(0, 2'000'000);
  begin(1);
  EXPECT_FALSE(may(kind::lookup));
  EXPECT_TRUE(gate.waits_for_room());
  EXPECT_EQ(group->waiting(), 1u);
  gate.cost_unknown();
  EXPECT_FALSE(may(kind::lookup));
  EXPECT_FALSE(gate.waits_for_room()) << "something else keeps it";
  gate.pass_on();
  EXPECT_EQ(group->waiting(), 0u);
}
