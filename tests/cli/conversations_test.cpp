#include "cli/trace_generator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

using testing::ElementsAre;

trace_request asking(std::vector<uint64_t> ids, std::string session = {}) {
  trace_request request;
  request.input_length = static_cast<uint32_t>(ids.size() * trace_block_tokens);
  request.hash_ids = std::move(ids);
  request.session_id = std::move(session);
  return request;
}

TEST(Conversations, FollowTheSessionIdWhereThereIsOne) {
  trace t{{asking({1}, "a"), asking({1}, "b"), asking({9}, "a")}};
  EXPECT_THAT(conversations_of(t), ElementsAre(0, 1, 0));
}

TEST(Conversations, AreContinuedByAPromptThatExtendsTheLatest) {
  trace t{{asking({1, 2}), asking({1, 3}), asking({1, 2, 4}), asking({1, 3, 5}), asking({1, 2, 4, 6})}};
  EXPECT_THAT(conversations_of(t), ElementsAre(0, 1, 0, 1, 0));
}

TEST(Conversations, ASharedSystemPromptAloneDoesNotJoin) {
  trace t{{asking({1, 2}), asking({1, 3}), asking({1, 4})}};
  EXPECT_THAT(conversations_of(t), ElementsAre(0, 1, 2));
}

TEST(Conversations, StayWithOneClientAndAreSpreadEvenly) {
  trace t{{asking({1, 2, 3}, "a"), asking({1}, "b"), asking({1, 2, 3}, "a"), asking({5}, "c")}};
  auto shares = distribute(t, 2);
  EXPECT_THAT(shares, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
}

TEST(Conversations, OneClientGetsTheTraceInItsOrder) {
  trace t{{asking({1}, "a"), asking({2}, "b"), asking({3}, "a")}};
  EXPECT_THAT(distribute(t, 1), ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(Conversations, MoreClientsThanConversationsLeaveSomeIdle) {
  trace t{{asking({1}, "a"), asking({2}, "a")}};
  EXPECT_THAT(distribute(t, 3), ElementsAre(ElementsAre(0, 1), ElementsAre(), ElementsAre()));
}

TEST(Conversations, TheFirstOnesCanBeKept) {
  trace t{{asking({1}, "a"), asking({2}, "b"), asking({3}, "a")}};
  trace kept = first_conversations(t, 1);
  ASSERT_EQ(kept.requests.size(), 2U);
  EXPECT_EQ(kept.requests[1].hash_ids[0], 3U);
}

} // namespace
} // namespace terrace::cli
