#include "connection/connection_life.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace std::chrono_literals;
using phase = connection_phase;

namespace {
const client_deadlines::time_point start{};
}

TEST(ClientDeadlines, AConnectionEndsUnlessItsClientMovesOn) {
  client_deadlines of{30s};
  EXPECT_FALSE(of.has_end());
  of.end_by(start + 10s);
  EXPECT_FALSE(of.is_over(start + 9s));
  EXPECT_EQ(of.next(start, false), start + 10s);
  EXPECT_TRUE(of.is_over(start + 10s));
  of.moved_on();
  EXPECT_FALSE(of.is_over(start + 1h));
  EXPECT_EQ(of.next(start, false), client_deadlines::never);
}

TEST(ClientDeadlines, SayWhatWasExpected) {
  EXPECT_NE(client_deadlines::overdue(phase::handshake).text.find("hello"), std::string::npos);
  EXPECT_NE(client_deadlines::overdue(phase::serving).text.find("rest of a frame"), std::string::npos);
  EXPECT_EQ(client_deadlines::unread().code, errc::busy);
}

TEST(ClientDeadlines, UnreadAnswersAreLookedAtAgain) {
  client_deadlines of{30s};
  of.took(start);
  EXPECT_FALSE(of.leaves_unread(start + 29s));
  EXPECT_EQ(of.next(start + 1s, true), start + 30s);
  EXPECT_EQ(of.next(start + 1s, false), client_deadlines::never);
  EXPECT_TRUE(of.leaves_unread(start + 30s));
  EXPECT_EQ(of.next(start + 30s, true), start + 60s);
  of.end_by(start + 40s);
  EXPECT_EQ(of.next(start + 30s, true), start + 40s);
}
