// Requests of prefetches in an allocator's queue: which requests pass them, and when they are refused.
#include "tests/tier/round_fixture.hpp"
#include "tier/space/allocation_queue.hpp"

using namespace terrace;
using namespace terrace::test;

namespace {
struct AheadOfDemand : round_fixture {
  static context_ptr of(uint64_t connection) {
    auto made = context();
    made->connection = connection_id{connection};
    return made;
  }
  static context_ptr ahead(uint64_t connection = 1) {
    auto made = of(connection);
    made->ahead = true;
    return made;
  }
};
} // namespace

TEST_F(AheadOfDemand, IsServedWhileNobodyElseWaits) {
  take({4, 4});
  auto prefetch = ask({2}, true, ahead());
  EXPECT_EQ(wanted(), 2 * page) << "it may evict";
  make_room({0, 1});
  EXPECT_TRUE(*prefetch);
}

TEST_F(AheadOfDemand, IsOvertakenByWhatAClientWaitsFor) {
  queue = make(64);
  auto taken = take({32, 32});
  auto prefetch = ask({8}, true, ahead());
  auto load = ask({8}, true, of(2));
  EXPECT_FALSE(*prefetch || *load);
  queue->free({taken[0]});
  EXPECT_TRUE(*load && *prefetch);
  auto again = take({16});
  auto second = ask({8}, true, ahead());
  auto large = ask({32}, true, of(2));
  queue->free(again);
  EXPECT_FALSE(*second) << "there would be space for it";
  EXPECT_FALSE(*large);
}

TEST_F(AheadOfDemand, IsRefusedOnceOthersTookAQuarterOfTheArenaBeforeIt) {
  queue = make(64);
  auto taken = take({8, 8, 48});
  auto prefetch = ask({16}, true, ahead());
  auto one = ask({8}, true, of(2));
  queue->free({taken[0]});
  EXPECT_TRUE(*one);
  EXPECT_FALSE(*prefetch);
  auto two = ask({8}, true, of(2));
  queue->free({taken[1]});
  EXPECT_TRUE(*two);
  ASSERT_TRUE(*prefetch);
  EXPECT_EQ((*prefetch)->failure.code, errc::busy);
}

TEST_F(AheadOfDemand, IsRefusedWhenNoRoomCanBeMadeForThoseWhoWait) {
  take({8});
  hold(0);
  auto prefetch = ask({1}, true, ahead());
  EXPECT_FALSE(*prefetch);
  auto store = ask({1}, true, of(2));
  make_room({});
  EXPECT_FALSE(*store);
  ASSERT_TRUE(*prefetch);
  EXPECT_EQ((*prefetch)->failure.code, errc::busy);
}

TEST_F(AheadOfDemand, HasAQuarterOfThePlaces) {
  queue = make(8, 0, 16);
  take({8});
  EXPECT_FALSE(*ask({1}, true, ahead(1)));
  EXPECT_FALSE(*ask({1}, true, ahead(2)));
  EXPECT_FALSE(*ask({1}, true, ahead(3)));
  EXPECT_FALSE(*ask({1}, true, ahead(4)));
  auto refused = ask({1}, true, ahead(5));
  ASSERT_TRUE(*refused);
  EXPECT_EQ((*refused)->failure.code, errc::busy);
  EXPECT_FALSE(*ask({1}, true, of(6))) << "others still wait";
  EXPECT_EQ(queue->waiting(), 5u);
}

TEST_F(AheadOfDemand, EndsWithItsRequest) {
  take({8});
  auto context = ahead();
  auto prefetch = ask({1}, true, context);
  context->ended = errc::cancelled;
  queue->sweep();
  ASSERT_TRUE(*prefetch);
  EXPECT_EQ((*prefetch)->failure.code, errc::cancelled);
  EXPECT_EQ(queue->waiting(), 0u);
}
