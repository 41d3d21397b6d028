#include "connection/reading_gate.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace terrace;
using protocol::kind;

namespace {

struct ReadingGate : ::testing::Test {
  std::shared_ptr<request_memory> group = std::make_shared<request_memory>(1'000'000);
  request_table requests{connection_id{1}, {2, 1'000'000, std::chrono::seconds(30)}};
  waiting_requests waiting{{2, 1'000'000}};
  reading_gate gate{connection_id{1}, group};
  int woken = 0;

  void SetUp() override {
    gate.on_room([this] { ++woken; });
  }
  static protocol::frame_header header(kind which, uint32_t bytes = 64) {
    protocol::frame_header next;
    next.kind = which;
    next.length = bytes;
    return next;
  }
  /// True if the request would be served now.
  bool may(kind which, uint32_t bytes = 64) {
    gate.look();
    return gate.may_begin(header(which, bytes), requests);
  }
  reading_gate::admission receives(kind which, uint32_t bytes = 64) {
    gate.look();
    return gate.may_receive(header(which, bytes), requests, waiting);
  }
  void wait(kind which, size_t bytes = 64) {
    std::vector<uint8_t> body(bytes - protocol::header_bytes);
    protocol::frame frame{which, 9, body, {}};
    waiting.add(std::move(frame), true, {}, [] { return keep_alive(); });
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
  wait(kind::store);
  wait(kind::store);
  EXPECT_EQ(receives(kind::store, 6'000), reading_gate::admission::wait);
  gate.account(100, 0);
  waiting.clear();
  EXPECT_EQ(receives(kind::store, 5'000), reading_gate::admission::has_room);
  gate.account(100, 5'000);
  wait(kind::store);
  wait(kind::store);
  EXPECT_EQ(receives(kind::store, 5'000), reading_gate::admission::has_room);
  gate.account(0, 0);
  EXPECT_EQ(group->bytes(), 0u);
}

TEST_F(ReadingGate, WithoutCreditRequestsAreReceivedAndWaitUpToABound) {
  begin(1);
  begin(2);
  EXPECT_EQ(receives(kind::lookup), reading_gate::admission::keep);
  EXPECT_EQ(receives(kind::lookup, 100'000), reading_gate::admission::has_room);
  wait(kind::lookup);
  wait(kind::lookup);
  EXPECT_EQ(receives(kind::lookup), reading_gate::admission::wait);
  EXPECT_EQ(receives(kind::cancel), reading_gate::admission::has_room);
  EXPECT_EQ(receives(kind::release), reading_gate::admission::keep) << "it may have to wait";
}

TEST_F(ReadingGate, WhileTheGroupIsFullOnlyShortRequestsAreReceivedToWait) {
  begin(1);
  begin(2);
  group->change(0, 2'000'000);
  EXPECT_EQ(receives(kind::lookup), reading_gate::admission::keep);
  EXPECT_EQ(receives(kind::lookup, 100'000), reading_gate::admission::wait);
  EXPECT_TRUE(gate.waits_for_room());
  wait(kind::lookup, waiting_requests::always_bytes);
  EXPECT_EQ(receives(kind::lookup), reading_gate::admission::wait);
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
