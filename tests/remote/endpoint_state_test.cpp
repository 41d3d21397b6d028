// An endpoint that fails is left alone, and always asked again.
#include "remote/endpoint_state.hpp"

#include <gtest/gtest.h>

namespace terrace::remote {
namespace {

using namespace std::chrono_literals;
using state = breaker::state;

const breaker::time_point start{std::chrono::hours(1)};
constexpr byte_window::options small{.smallest_bytes = 100, .largest_bytes = 400};

TEST(ByteWindow, BoundsTheBytesInFlight) {
  byte_window window(small);
  EXPECT_TRUE(window.has_room(100));
  window.began(60);
  EXPECT_TRUE(window.has_room(40));
  EXPECT_FALSE(window.has_room(41));
  window.gave_up(60);
  EXPECT_EQ(window.in_flight(), 0u);
  EXPECT_EQ(window.size(), 100u);
}

TEST(ByteWindow, ALargerRequestIsAlone) {
  byte_window window(small);
  EXPECT_TRUE(window.has_room(5'000));
  window.began(5'000);
  EXPECT_FALSE(window.has_room(1));
}

TEST(ByteWindow, DoublesWithEachWindowUpToTheLargest) {
  byte_window window(small);
  for (uint64_t size : {200u, 400u, 400u}) {
    uint64_t whole = window.size();
    window.began(whole);
    window.succeeded(whole);
    EXPECT_EQ(window.size(), size);
  }
}

TEST(ByteWindow, GrowsNoFurtherThanKeepsTheConnectionBusy) {
  byte_window window(small);
  window.keep_within(150);
  window.began(100);
  window.succeeded(100);
  EXPECT_EQ(window.size(), 150u);
  window.keep_within(1'000);
  window.began(150);
  window.succeeded(150);
  EXPECT_EQ(window.size(), 300u);
  window.keep_within(120);
  EXPECT_EQ(window.size(), 120u);
  window.keep_within(7);
  EXPECT_EQ(window.size(), 100u) << "the smallest";
}

TEST(ByteWindow, ANewConnectionBeginsSlowly) {
  byte_window window(small);
  window.began(300);
  window.succeeded(300);
  window.began(300);
  window.restart();
  EXPECT_EQ(window.size(), 100u);
  EXPECT_EQ(window.in_flight(), 0u);
}

// A store that stands still for whoever waits for it: nobody waits longer than the limit.
TEST(Silence, EndsAtTheLimitAfterTheLastThingHeard) {
  silence link;
  link.begin(150ms);
  EXPECT_FALSE(link.ends_at());
  link.awaits(true, start);
  EXPECT_EQ(link.ends_at(), start + 150ms);
  link.heard(start + 100ms);
  link.awaits(true, start + 100ms);
  EXPECT_EQ(link.ends_at(), start + 250ms);
}

TEST(Silence, AskingForMoreDoesNotProlongIt) {
  silence link;
  link.begin(150ms);
  for (auto asked = start; asked < start + 1s; asked += 10ms)
    link.awaits(true, asked);
  EXPECT_EQ(link.ends_at(), start + 150ms);
}

TEST(Silence, AnEndpointOfWhichNothingIsAskedMayBeSilent) {
  silence link;
  link.begin(150ms);
  link.awaits(true, start);
  link.heard(start + 1ms);
  link.awaits(false, start + 1ms);
  EXPECT_FALSE(link.ends_at());
  link.awaits(true, start + 1h);
  EXPECT_EQ(link.ends_at(), start + 1h + 150ms);
}

// A reply of 1 MiB that comes byte by byte would hold its reader for as long as the store likes.
TEST(Silence, ATrickleIsSilence) {
  silence link;
  link.begin(150ms);
  link.awaits(true, start);
  auto now = start;
  for (; now < start + 1s; now += 1ms)
    link.received(100, now);
  EXPECT_EQ(link.ends_at(), start + 655ms + 150ms) << "64 KiB count, and then again 64 KiB";
  link.begin(150ms);
  link.awaits(true, start);
  for (now = start; now < start + 1s; now += 100ms)
    link.received(silence::bytes_that_count, now);
  EXPECT_EQ(link.ends_at(), start + 900ms + 150ms) << "a slow link is none";
}

TEST(Breaker, OpensAfterFailuresInARow) {
  breaker endpoint;
  for (int i = 0; i < 4; ++i)
    EXPECT_FALSE(endpoint.failed(start, 0));
  endpoint.succeeded();
  for (int i = 0; i < 4; ++i)
    EXPECT_FALSE(endpoint.failed(start, 0));
  EXPECT_EQ(endpoint.now(), state::closed);
  EXPECT_TRUE(endpoint.failed(start, 0));
  EXPECT_EQ(endpoint.now(), state::open);
  EXPECT_EQ(endpoint.retry_at(), start + 500ms);
}

TEST(Breaker, OpensIfHalfOfTheLastRequestsFail) {
  breaker endpoint;
  bool opened = false;
  int failures = 0;
  while (!opened && failures < 100) {
    endpoint.succeeded();
    opened = endpoint.failed(start, 0);
    ++failures;
  }
  EXPECT_EQ(failures, 10);
}

TEST(Breaker, StaysClosedIfFewerThanHalfFail) {
  breaker endpoint;
  for (int i = 0; i < 1000; ++i) {
    endpoint.succeeded();
    endpoint.succeeded();
    EXPECT_FALSE(endpoint.failed(start, 0));
  }
}

breaker opened() {
  breaker endpoint({.failures_in_a_row = 1});
  EXPECT_TRUE(endpoint.failed(start, 0));
  return endpoint;
}

TEST(Breaker, ResultsOfEarlierRequestsAreIgnoredWhileItIsOpen) {
  breaker endpoint = opened();
  endpoint.succeeded();
  EXPECT_FALSE(endpoint.failed(start + 1s, 0));
  EXPECT_EQ(endpoint.now(), state::open);
  EXPECT_EQ(endpoint.retry_at(), start + 500ms);
}

TEST(Breaker, ATrialThatSucceedsClosesIt) {
  breaker endpoint = opened();
  endpoint.begin_trial();
  EXPECT_EQ(endpoint.now(), state::half_open) << "only the trial";
  endpoint.trial_succeeded(start);
  EXPECT_EQ(endpoint.now(), state::closed);
  EXPECT_TRUE(endpoint.failed(start + 1min, 0));
  EXPECT_EQ(endpoint.retry_at(), start + 1min + 500ms) << "the first pause again";
}

TEST(Breaker, OneThatFailsAgainAndAgainAfterItsTrialIsTriedLessOften) {
  breaker endpoint = opened();
  auto now = start;
  for (auto pause : {1'000ms, 2'000ms, 4'000ms, 8'000ms, 16'000ms, 30'000ms, 30'000ms}) {
    now = endpoint.retry_at();
    endpoint.begin_trial();
    endpoint.trial_succeeded(now);
    now += 9s;
    EXPECT_TRUE(endpoint.failed(now, 0));
    EXPECT_EQ(endpoint.retry_at(), now + pause);
  }
  now = endpoint.retry_at();
  endpoint.begin_trial();
  endpoint.trial_succeeded(now);
  EXPECT_TRUE(endpoint.failed(now + 10s, 0));
  EXPECT_EQ(endpoint.retry_at(), now + 10s + 500ms) << "it served for a while";
}

TEST(Breaker, FailuresBeforeATrialDoNotCountAfterIt) {
  breaker endpoint;
  for (int i = 0; i < 5; ++i)
    endpoint.failed(start, 0);
  endpoint.begin_trial();
  endpoint.trial_succeeded(start);
  for (int i = 0; i < 4; ++i)
    EXPECT_FALSE(endpoint.failed(start, 0));
  EXPECT_TRUE(endpoint.failed(start, 0));
}

// The breakers of some peers never closed again after an outage of a minute.
void is_tried_for_ever(breaker::trial how, const std::vector<std::chrono::milliseconds>& pauses) {
  breaker endpoint = opened();
  auto now = start;
  for (auto pause : pauses) {
    now = endpoint.retry_at();
    endpoint.begin_trial();
    endpoint.trial_failed(how, now, 0);
    EXPECT_EQ(endpoint.retry_at(), now + pause);
  }
  for (int i = 0; i < 10'000; ++i) {
    now = endpoint.retry_at();
    endpoint.begin_trial();
    endpoint.trial_failed(how, now, 0);
  }
  EXPECT_EQ(endpoint.retry_at(), now + pauses.back());
  endpoint.begin_trial();
  endpoint.trial_succeeded(now);
  EXPECT_EQ(endpoint.now(), state::closed);
}

TEST(Breaker, AnEndpointThatDoesNotAnswerIsTriedEveryTwoSecondsForEver) {
  is_tried_for_ever(breaker::trial::no_answer, {1'000ms, 2'000ms, 2'000ms});
}

TEST(Breaker, AnEndpointThatRefusesUsIsTriedEveryHalfMinuteForEver) {
  is_tried_for_ever(breaker::trial::refused,
                    {1'000ms, 2'000ms, 4'000ms, 8'000ms, 16'000ms, 30'000ms, 30'000ms});
}

TEST(Breaker, AnEndpointThatNoLongerRefusesUsIsTriedOftenAgain) {
  breaker endpoint = opened();
  for (int i = 0; i < 10; ++i) {
    endpoint.begin_trial();
    endpoint.trial_failed(breaker::trial::refused, start, 0);
  }
  endpoint.begin_trial();
  endpoint.trial_failed(breaker::trial::no_answer, start, 0);
  EXPECT_EQ(endpoint.retry_at(), start + 2s);
}

TEST(Breaker, PausesAreSpreadOverTheirSecondHalf) {
  std::map<int64_t, int> seen;
  for (uint64_t random = 0; random < 1000; ++random) {
    breaker endpoint({.failures_in_a_row = 1});
    endpoint.failed(start, random);
    ++seen[(endpoint.retry_at() - start) / 1ms];
  }
  EXPECT_EQ(seen.begin()->first, 250);
  EXPECT_EQ(seen.rbegin()->first, 500);
  EXPECT_EQ(seen.size(), 251u);
}

constexpr breaker::options quick{.failures_in_a_row = 1, .quick_pause = 50ms};

TEST(Breaker, MayTryAgainAtOnce) {
  breaker endpoint(quick);
  EXPECT_FALSE(endpoint.is_quick());
  EXPECT_TRUE(endpoint.failed(start, 0));
  EXPECT_TRUE(endpoint.is_quick());
  EXPECT_EQ(endpoint.retry_at(), start + 50ms);
  endpoint.begin_trial();
  EXPECT_TRUE(endpoint.is_quick()) << "it is the quick trial";
  endpoint.trial_succeeded(start + 50ms);
  EXPECT_FALSE(endpoint.is_quick());
}

TEST(Breaker, BehindAQuickTrialThatFailedIsTheFirstPause) {
  for (const auto how : {breaker::trial::no_answer, breaker::trial::refused}) {
    breaker endpoint(quick);
    endpoint.failed(start, 0);
    endpoint.begin_trial();
    endpoint.trial_failed(how, start, 0);
    EXPECT_FALSE(endpoint.is_quick());
    EXPECT_EQ(endpoint.retry_at(), start + 500ms);
    endpoint.begin_trial();
    endpoint.trial_failed(how, start, 0);
    EXPECT_EQ(endpoint.retry_at(), start + 1s);
  }
}

TEST(Breaker, OneThatFailsSoonAfterAQuickTrialHasToWait) {
  breaker endpoint(quick);
  endpoint.failed(start, 0);
  endpoint.begin_trial();
  endpoint.trial_succeeded(start);
  EXPECT_TRUE(endpoint.failed(start + 9s, 0));
  EXPECT_FALSE(endpoint.is_quick());
  EXPECT_EQ(endpoint.retry_at(), start + 9s + 500ms);
  endpoint.begin_trial();
  endpoint.trial_succeeded(start + 10s);
  EXPECT_TRUE(endpoint.failed(start + 20s, 0));
  EXPECT_TRUE(endpoint.is_quick()) << "it served for a while";
}

TEST(Breaker, QuickPausesAreSpreadOverAllOfTheirLength) {
  std::map<int64_t, int> seen;
  for (uint64_t random = 0; random < 1000; ++random) {
    breaker endpoint(quick);
    endpoint.failed(start, random);
    ++seen[(endpoint.retry_at() - start) / 1ms];
  }
  EXPECT_EQ(seen.begin()->first, 1) << "a server that is connected to at once may not have ended yet";
  EXPECT_EQ(seen.rbegin()->first, 50);
  EXPECT_EQ(seen.size(), 50u);
}

TEST(PauseAfterRefusal, IsARandomPartOfABoundThatGrows) {
  for (auto [tried, bound] : {std::pair(0u, 100), {1u, 400}}) {
    std::map<int64_t, int> seen;
    for (uint64_t random = 0; random < 1000; ++random)
      ++seen[pause_after_refusal(tried, 0s, random).value().count()];
    EXPECT_EQ(seen.begin()->first, 0);
    EXPECT_EQ(seen.rbegin()->first, bound);
    EXPECT_EQ(seen.size(), static_cast<size_t>(bound) + 1);
  }
}

TEST(PauseAfterRefusal, RequestsAreSentAgainTwice) {
  EXPECT_TRUE(pause_after_refusal(1, 0s, 7));
  EXPECT_FALSE(pause_after_refusal(2, 0s, 7));
}

TEST(PauseAfterRefusal, AStoreThatWantsTimeGetsASecondAndNoMore) {
  EXPECT_EQ(pause_after_refusal(0, 1s, 50), 1050ms);
  EXPECT_FALSE(pause_after_refusal(0, 2s, 50));
}

TEST(RequestWindow, HalvesWhenTheStoreAsksForFewerAndGrowsAgain) {
  request_window window(8);
  EXPECT_TRUE(window.has_room(7));
  EXPECT_FALSE(window.has_room(8));
  window.too_many();
  EXPECT_EQ(window.size(), 4U);
  for (int i = 0; i < 3; ++i)
    window.succeeded();
  EXPECT_EQ(window.size(), 4U);
  window.succeeded();
  EXPECT_EQ(window.size(), 5U);
  EXPECT_FALSE(window.is_largest());
  for (int i = 0; i < 10; ++i)
    window.too_many();
  EXPECT_EQ(window.size(), 1U) << "something is always asked";
  for (int i = 0; i < 100; ++i)
    window.succeeded();
  EXPECT_EQ(window.size(), 8U);
  EXPECT_TRUE(window.is_largest());
}

} // namespace
} // namespace terrace::remote
