#include "runtime/job_queue.hpp"

#include <gtest/gtest.h>

namespace terrace::runtime {
namespace {

struct fixture {
  std::vector<int> items = std::vector<int>(20);
  job_queue<int> queue;
  fixture() {
    for (int i = 0; i < 20; ++i)
      items[static_cast<size_t>(i)] = i;
  }
  void push(size_t i, job_kind kind) { queue.push({&items[i], kind, 0}); }
  job<int> run() {
    auto inherits = queue.take_next();
    return inherits.value != nullptr ? inherits : queue.pop();
  }
  void push_next(size_t i, job_kind kind) { queue.push_next({&items[i], kind, 0}); }
};

TEST(JobQueue, RunsFloatingJobsFirstAndEachKindInOrder) {
  fixture f;
  f.push(0, job_kind::homed);
  f.push(1, job_kind::floating);
  f.push(2, job_kind::homed);
  f.push(3, job_kind::floating);
  EXPECT_EQ(f.queue.floating(), 2u);
  for (int expected : {1, 3, 0, 2})
    EXPECT_EQ(*f.queue.pop().value, expected);
  EXPECT_TRUE(f.queue.empty());
  EXPECT_EQ(f.queue.floating(), 0u);
}

TEST(JobQueue, GivesAHomedJobItsTurnBetweenManyFloatingOnes) {
  fixture f;
  f.push(0, job_kind::homed);
  for (size_t i = 1; i < 7; ++i)
    f.push(i, job_kind::floating);
  for (int expected : {1, 2, 3, 4, 0, 5, 6})
    EXPECT_EQ(*f.queue.pop().value, expected);
}

TEST(JobQueue, AFloatingJobThatIsNotDoneLetsAHomedOneGoFirst) {
  fixture f;
  f.push(0, job_kind::floating);
  f.push(1, job_kind::homed);
  f.push(2, job_kind::homed);
  auto busy = f.queue.pop();
  EXPECT_EQ(*busy.value, 0);
  f.queue.push_again(busy);
  EXPECT_FALSE(f.queue.next().again);
  EXPECT_EQ(*f.queue.pop().value, 1);
  EXPECT_TRUE(f.queue.next().again);
  EXPECT_EQ(*f.queue.pop().value, 0);
  f.queue.push_again(busy);
  EXPECT_EQ(*f.queue.pop().value, 2);
  f.queue.push_again({&f.items[3], job_kind::homed, 0});
  EXPECT_EQ(*f.queue.pop().value, 0) << "homed jobs take no such turns";
}

TEST(JobQueue, AHomedJobThatIsNotDoneGoesBehindThoseThatWereJustWoken) {
  fixture f;
  f.push(0, job_kind::homed);
  f.push(1, job_kind::homed);
  f.queue.push_again(f.queue.pop());
  f.push(2, job_kind::homed);
  EXPECT_EQ(f.queue.homed(), 3u);
  for (int expected : {1, 2}) {
    EXPECT_FALSE(f.queue.next().again);
    EXPECT_EQ(*f.queue.pop().value, expected);
  }
  EXPECT_TRUE(f.queue.next().again);
  EXPECT_EQ(*f.queue.pop().value, 0);
  EXPECT_TRUE(f.queue.empty());
}

TEST(JobQueue, AHomedJobThatIsNotDoneHasItsTurnAmongManyFreshOnes) {
  fixture f;
  f.push(0, job_kind::homed);
  f.queue.push_again(f.queue.pop());
  for (size_t i = 1; i < 12; ++i)
    f.push(i, job_kind::homed);
  std::vector<int> order;
  while (!f.queue.empty())
    order.push_back(*f.queue.pop().value);
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 10, 11}))
      << "the first turn counts among the eight";
}

TEST(JobQueue, GivesAwayTheYoungerHalfOfItsFloatingJobsInOrder) {
  fixture f;
  for (size_t i = 0; i < 10; ++i)
    f.push(i, i % 2 == 0 ? job_kind::floating : job_kind::homed);
  auto taken = f.queue.take_half();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(*taken[0].value, 6);
  EXPECT_EQ(*taken[1].value, 8);
  EXPECT_EQ(f.queue.floating(), 3u);
  for (int expected : {0, 2, 4, 1, 3, 5, 7, 9})
    EXPECT_EQ(*f.queue.pop().value, expected);
}

TEST(JobQueue, RunsTheJobThatWasWokenLastNextAndItsFormerOneInItsOrder) {
  fixture f;
  f.push(0, job_kind::floating);
  f.push(1, job_kind::homed);
  f.push_next(2, job_kind::homed);
  f.push_next(3, job_kind::homed);
  EXPECT_EQ(f.queue.size(), 4u);
  EXPECT_EQ(f.queue.homed(), 3u);
  EXPECT_EQ(*f.queue.take_next().value, 3);
  EXPECT_EQ(f.queue.take_next().value, nullptr);
  for (int expected : {0, 1, 2})
    EXPECT_EQ(*f.queue.pop().value, expected);
  EXPECT_TRUE(f.queue.empty());
}

TEST(JobQueue, JobsThatWakeOneAnotherLetTheOthersGoFirstAfterSome) {
  for (auto kind : {job_kind::homed, job_kind::floating}) {
    fixture f;
    f.push(0, kind);
    f.push(1, kind);
    f.push(2, kind);
    std::vector<int> order;
    for (size_t woken = 10; !f.queue.empty();) {
      order.push_back(*f.run().value);
      if (order.back() != 1 && order.back() != 2 && woken < 15)
        f.push_next(woken++, kind);
    }
    EXPECT_EQ(order, (std::vector{0, 10, 11, 12, 1, 2, 13, 14}))
        << "the fourth in a row goes to the end of the line";
  }
}

TEST(JobQueue, AJobInTheNextPlaceKeepsNoTurnOfTheOthers) {
  fixture f;
  f.push(0, job_kind::homed);
  f.queue.push_again(f.queue.pop());
  for (size_t i = 1; i < 4; ++i)
    f.push(i, job_kind::homed);
  std::vector<int> order;
  for (size_t woken = 10; !f.queue.empty();) {
    order.push_back(*f.run().value);
    if (order.back() < 10)
      f.push_next(woken++, job_kind::homed);
  }
  EXPECT_EQ(order, (std::vector{1, 10, 2, 11, 3, 12, 0, 13})) << "each runs in the turn that woke it";
}

TEST(JobQueue, GivesAJobInTheNextPlaceToNobody) {
  fixture f;
  f.push(0, job_kind::floating);
  f.push(1, job_kind::floating);
  f.push_next(2, job_kind::floating);
  EXPECT_EQ(f.queue.floating(), 2u);
  auto taken = f.queue.take_half();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(*taken[0].value, 1);
  EXPECT_EQ(*f.run().value, 2);
  EXPECT_EQ(*f.run().value, 0);
}

TEST(JobQueue, NeverGivesHomedJobsAway) {
  fixture f;
  for (size_t i = 0; i < 9; ++i)
    f.push(i, job_kind::homed);
  EXPECT_TRUE(f.queue.take_half().empty());
  EXPECT_EQ(f.queue.size(), 9u);
}

} // namespace
} // namespace terrace::runtime
