#include "policy/eviction_tracker.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

namespace terrace::test {
namespace {

/// Counts uses by class, through a tracker with kmg. Times are in seconds.
struct learner {
  learner() {
    if (!tracker.set_policy(0, "kmg"))
      throw std::invalid_argument("kmg");
  }
  request_number request(std::initializer_list<uint64_t> chain, uint64_t at, uint32_t turn = 0) {
    std::vector<entry_key> keys;
    for (uint64_t n : chain)
      keys.push_back({n, n});
    return tracker.begin_request(keys, {.turn = turn}, at * 1'000'000'000);
  }
  void end(request_number request, const request_outcome& outcome, uint64_t at) {
    tracker.end_request(request, outcome, at * 1'000'000'000);
  }
  /// Returns the open uses of a class.
  double open(const access_history::kind& of) {
    size_t of_class = access_history::class_for(of);
    auto& returns = tracker.model()->returns(of_class);
    return tracker.model()->reached(of_class)[0] - std::accumulate(returns.begin(), returns.end(), 0.0);
  }
  /// Returns the open uses of trunks.
  double open_trunks(uint32_t starts) { return open({.starts = starts}); }

  eviction_tracker tracker;
};

TEST(UseHistory, ClassesByCountAndByTheRequestThatUsedItLast) {
  learner test;
  test.request({1, 2}, 10);
  EXPECT_EQ(test.open({.added = 2}), 2);
  test.request({1, 2, 3}, 20);
  EXPECT_EQ(test.open({.added = 2}), 0);
  EXPECT_EQ(test.open({.uses = 2, .added = 1, .pause_seconds = 10}), 2);
  EXPECT_EQ(test.open({.uses = 1, .added = 1, .pause_seconds = 10}), 1);
  test.request({1, 2, 3, 4}, 120);
  EXPECT_EQ(test.open({.uses = 3, .added = 1, .pause_seconds = 100}), 2);
  test.request({50, 51, 52, 53, 54, 55, 56, 57}, 130);
  EXPECT_EQ(test.open({.added = 8}), 8);
}

TEST(UseHistory, LearnsHowARequestEnded) {
  using enum request_ending;
  auto told = [](const request_outcome& outcome, request_ending how) {
    learner test;
    auto request = test.request({1, 2}, 10);
    EXPECT_EQ(test.open({.added = 2}), 2);
    test.end(request, outcome, 11);
    EXPECT_EQ(test.open({.added = 2}), how == untold ? 2 : 0);
    EXPECT_EQ(test.open({.added = 2, .how = how}), 2) << static_cast<int>(how);
  };
  told({}, untold);
  told({.reason = finish_reason::stop}, untold);
  told({.output_tokens = 39}, short_answer);
  told({.output_tokens = 40}, middling_answer);
  told({.output_tokens = 300}, long_answer);
  told({.output_tokens = 300, .reason = finish_reason::tool_call}, tool_call);
  // The request began a second before it ended.
  told({.reason = finish_reason::tool_call, .think_time_ns = 13'500'000'000}, expected_after(14));
  told({.think_time_ns = 15'500'000'000}, expected_after(16));
  told({.think_time_ns = 600'000'000'000}, expected_after(512));
  told({.session_closed = true, .think_time_ns = 0}, closed);
}

TEST(UseHistory, WhatIsToldToCloseAndComesBackAllTheSameIsKept) {
  // Conversations of two turns whose clients say "closed" after the first come back after 10 s; the silent ones never.
  eviction_tracker tracker;
  if (!tracker.set_policy(0, "kmg"))
    throw std::invalid_argument("kmg");
  uint64_t second = 1'000'000'000, now = 0;
  for (uint64_t n = 1; n < 4'000; ++n) {
    now += second;
    std::vector<entry_key> chain{{n, 1}, {n, 2}};
    auto first = tracker.begin_request(chain, {}, now);
    tracker.end_request(first, {.session_closed = n % 2 == 0}, now);
    if (n < 10 || n % 2 != 0)
      continue;
    std::vector<entry_key> back{{n - 10, 1}, {n - 10, 2}, {n - 10, 3}};
    tracker.begin_request(back, {}, now);
  }
  const survival_model& model = *tracker.model();
  EXPECT_GT(model.value(access_history::class_for({.added = 2, .how = request_ending::closed}), 0),
            2 * model.value(access_history::class_for({.added = 2}), 0));
}

TEST(UseHistory, ExpectedTimesAreOfOneStepUpToTheirDouble) {
  EXPECT_EQ(expected_after(0), request_ending::expected);
  EXPECT_EQ(expected_after(1), request_ending::expected);
  EXPECT_NE(expected_after(2), expected_after(1));
  EXPECT_EQ(expected_after(64), expected_after(127));
  EXPECT_NE(expected_after(64), expected_after(63));
  EXPECT_EQ(static_cast<size_t>(expected_after(~uint64_t{0})), request_endings - 1);
}

TEST(UseHistory, KeepsRatherWhatIsExpectedSooner) {
  // Every other conversation returns after 100 s, the others after 400 s, and the clients say so.
  learner test;
  std::vector<request_number> requests;
  for (uint64_t n = 1; n < 4'000; ++n) {
    auto told = [&](uint64_t begun) { return begun % 2 == 0 ? uint64_t{100} : uint64_t{400}; };
    for (uint64_t began : {n - std::min<uint64_t>(n, 100), n - std::min<uint64_t>(n, 400)})
      if (began != 0 && began + told(began) == n)
        test.request({began, began + 100'000}, n);
    auto request = test.request({n}, n);
    test.end(request, {.think_time_ns = told(n) * 1'000'000'000}, n);
  }
  auto value = [&](uint64_t seconds, uint64_t age) {
    return test.tracker.model()->value(
        access_history::class_for({.added = 1, .how = expected_after(seconds)}), age * 954);
  };
  EXPECT_GT(value(100, 0), 2 * value(400, 0));
  EXPECT_GT(value(400, 300), 2 * value(400, 0)) << "its time comes";
}

TEST(UseHistory, LeavesWhatALaterRequestUsedToThat) {
  learner test;
  auto first = test.request({1, 2}, 10);
  test.request({1, 5}, 12);
  test.end(first, {.output_tokens = 10}, 13);
  EXPECT_EQ(test.open({.added = 2, .how = request_ending::short_answer}), 1); // only entry 2
}

TEST(UseHistory, TakesAPrefixOfSeveralConversationsForATrunk) {
  learner test;
  test.request({1, 2}, 10);
  test.request({1, 3}, 20); // one successor so far: this may be the conversation that went on
  EXPECT_EQ(test.open_trunks(2), 0);
  test.request({1, 4}, 30);
  EXPECT_EQ(test.open_trunks(2), 1);
  for (uint64_t n = 5; n < 7; ++n)
    test.request({1, n}, 10 * n);
  EXPECT_EQ(test.open_trunks(2), 0);
  EXPECT_EQ(test.open_trunks(4), 1); // by powers of two
}

TEST(UseHistory, LearnsEachSpaceApartAndLeansOnAll) {
  eviction_tracker tracker;
  if (!tracker.set_policy(0, "kmg"))
    throw std::invalid_argument("kmg");
  // Single chunks are used twice: in space 1 after ten seconds, in space 2 never again.
  uint64_t second = 1'000'000'000, now = 0;
  auto ask = [&](uint32_t space, uint64_t n) {
    std::vector<entry_key> chain{{space, n}};
    tracker.end_request(tracker.begin_request(chain, {.space = space}, now), {}, now);
  };
  for (uint64_t n = 1; n < 4'000; ++n) {
    now += second;
    ask(1, n);
    ask(2, n);
    if (n > 10)
      ask(1, n - 10);
  }
  size_t fresh = access_history::class_for({.added = 1});
  float one = tracker.model_of(1)->value(fresh, 0), two = tracker.model_of(2)->value(fresh, 0),
        all = tracker.model()->value(fresh, 0);
  EXPECT_GT(one, 1.3 * all);
  EXPECT_LT(two, 0.5 * all);
  EXPECT_EQ(tracker.model_of(3), nullptr);
  ask(3, 1);
  EXPECT_NEAR(tracker.model_of(3)->value(fresh, 0), all, 0.01 * all)
      << "of a new space nothing else is known";
}

TEST(UseHistory, ATrunkIsCountedInTheSpaceThatItIsOf) {
  learner test;
  for (uint64_t n = 2; n < 5; ++n) {
    std::vector<entry_key> chain{{1, 1}, {n, n}};
    test.tracker.begin_request(chain, {.space = 4}, n * 1'000'000'000);
  }
  size_t trunk = access_history::class_for({.starts = 2});
  EXPECT_EQ(test.tracker.model_of(4)->reached(trunk)[0], 1);
  EXPECT_EQ(test.open_trunks(2), 1);
}

TEST(UseHistory, BelievesTheTurnThatAClientTells) {
  learner test;
  test.request({1, 2}, 10, 1);
  test.request({1, 3}, 20, 1);
  EXPECT_EQ(test.open_trunks(2), 1);
  for (uint64_t n = 4; n < 10; ++n)
    test.request({1, n}, 10 * n, 5);
  EXPECT_EQ(test.open_trunks(2), 1); // no further starts
}

} // namespace
} // namespace terrace::test
