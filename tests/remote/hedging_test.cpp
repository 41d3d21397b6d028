// When a request is sent a second time: after the time of most answers, within bounds, and only with a token.
#include "remote/hedging.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace terrace::remote {
namespace hedging_test {

using namespace std::chrono_literals;
using enum hedging::kind;
using time_point = hedging::time_point;

const time_point start{std::chrono::hours(1)};
constexpr auto limit = 2'000ms;

void answer(hedging& policy, hedging::kind what, std::chrono::nanoseconds took, int times) {
  for (int i = 0; i < times; ++i)
    policy.answered(what, took);
}

TEST(Hedging, NothingIsSentAgainBeforeTwentyAnswersAreKnown) {
  hedging policy;
  answer(policy, get, 50ms, 19);
  EXPECT_EQ(policy.began(get, start, limit), std::nullopt);
  answer(policy, get, 50ms, 1);
  EXPECT_EQ(policy.began(get, start, limit), start + 50ms);
}

TEST(Hedging, TheDelayIsThatOfAllAnswersButOneInTwenty) {
  hedging policy;
  answer(policy, get, 30ms, 95);
  answer(policy, get, 900ms, 5);
  EXPECT_EQ(policy.began(get, start, limit), start + 30ms);
  answer(policy, get, 900ms, 5);
  EXPECT_EQ(policy.began(get, start, limit), start + 900ms);
}

TEST(Hedging, TheDelayIsThatOfASortedList) {
  std::mt19937 random(7);
  hedging policy;
  std::vector<std::chrono::nanoseconds> all;
  for (size_t i = 0; i < 3 * hedging::answers_kept; ++i) {
    all.push_back(std::chrono::microseconds(10'000 + random() % 500'000));
    policy.answered(get, all.back());
    if (all.size() < hedging::answers_min)
      continue;
    auto last = std::vector(all.end() - static_cast<ptrdiff_t>(std::min(all.size(), hedging::answers_kept)),
                            all.end());
    std::ranges::sort(last);
    EXPECT_EQ(policy.began(get, start, limit), start + last[last.size() - 1 - last.size() / 20]);
  }
}

TEST(Hedging, KindsHaveTheirOwnDelays) {
  hedging policy;
  answer(policy, get, 100ms, 20);
  EXPECT_EQ(policy.began(head, start, limit), std::nullopt);
  answer(policy, head, 20ms, 20);
  EXPECT_EQ(policy.began(head, start, limit), start + 20ms);
  EXPECT_EQ(policy.began(get, start, limit), start + 100ms);
}

TEST(Hedging, TheDelayIsBounded) {
  hedging policy;
  answer(policy, get, 1ms, 20);
  EXPECT_EQ(policy.began(get, start, limit), start + 10ms);
  EXPECT_EQ(policy.began(get, start, 12ms), start + 6ms) << "half of the time is left";
  answer(policy, get, 1'999ms, 128);
  EXPECT_EQ(policy.began(get, start, limit), start + 1'000ms);
}

TEST(Hedging, OldAnswersAreForgotten) {
  hedging policy;
  answer(policy, get, 900ms, 1'000);
  answer(policy, get, 40ms, hedging::answers_kept);
  EXPECT_EQ(policy.began(get, start, limit), start + 40ms);
}

TEST(Hedging, ATokenComesWithEachTwentiethRequest) {
  hedging policy;
  EXPECT_FALSE(policy.take());
  int taken = 0;
  for (int i = 1; i <= 1'000; ++i) {
    policy.began(i % 2 == 0 ? get : head, start, limit);
    taken += policy.take() ? 1 : 0;
    EXPECT_EQ(taken, i / 20);
  }
}

TEST(Hedging, FourTokensAreKeptAtMost) {
  hedging policy;
  for (int i = 0; i < 10'000; ++i)
    policy.began(get, start, limit);
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(policy.take()) << i;
  EXPECT_FALSE(policy.take());
}

/// Requests to a store of which one answer in fifty takes a second. The test counts how many are sent again, and how many are late
/// all the same.
TEST(Hedging, FewRequestsBringMostOfTheSlowAnswersInTime) {
  std::mt19937 random(3);
  hedging policy;
  const auto draw = [&random]() -> std::chrono::nanoseconds {
    return random() % 50 == 0 ? 1'000ms : std::chrono::milliseconds(20 + random() % 20);
  };
  int late_without = 0, late = 0, sent_again = 0;
  for (int i = 0; i < 10'000; ++i) {
    const time_point now = start + i * 100ms;
    auto took = draw();
    late_without += took > 200ms ? 1 : 0;
    if (auto due = policy.began(get, now, limit); due && now + took > *due && policy.take()) {
      ++sent_again;
      took = std::min(took, *due - now + draw());
    }
    late += took > 200ms ? 1 : 0;
    policy.answered(get, took);
  }
  EXPECT_LE(sent_again, 500);
  EXPECT_GT(late_without, 150);
  EXPECT_LT(late, late_without / 4) << sent_again;
}

TEST(Hedging, AStoreThatIsSlowAsAWholeIsAskedLittleMore) {
  hedging policy;
  for (int i = 0; i < 1'000; ++i) {
    policy.began(get, start, limit);
    policy.answered(get, 20ms);
  }
  int sent_again = 0;
  for (int i = 0; i < 1'000; ++i) {
    const auto took = 700ms;
    if (auto due = policy.began(get, start, limit); start + took > *due && policy.take())
      ++sent_again;
    policy.answered(get, took);
  }
  EXPECT_GT(sent_again, 0);
  EXPECT_LE(sent_again, 5) << "until its answers are known to be slow";
}

} // namespace hedging_test
} // namespace terrace::remote
