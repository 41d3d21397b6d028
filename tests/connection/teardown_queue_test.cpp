#include "connection/connection_life.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {
teardown_queue::work nothing() {
  return std::make_shared<std::function<void()>>([] {});
}
} // namespace

TEST(TeardownQueue, GivesTheWorkOfRequestsThatHaveEnded) {
  teardown_queue line;
  auto first = std::make_shared<request_context>(), second = std::make_shared<request_context>();
  auto a = nothing(), b = nothing();
  line.add(first, a);
  line.add(second, b);
  EXPECT_TRUE(line.take_ended().empty());
  second->ended = errc::cancelled;
  EXPECT_EQ(line.take_ended(), std::vector{b});
  EXPECT_TRUE(line.take_ended().empty()) << "each once";
  EXPECT_EQ(line.size(), 1u);
}

TEST(TeardownQueue, ForgetsWorkThatIsDone) {
  teardown_queue line;
  auto of = std::make_shared<request_context>();
  line.add(of, nothing());
  auto second = nothing();
  line.add(of, second);
  EXPECT_EQ(line.size(), 1u);
  second.reset();
  of->ended = errc::deadline;
  EXPECT_TRUE(line.take_ended().empty());
}

/// A check asks how many requests are in progress.
TEST(TeardownQueue, KeepsNoRequestThatIsDone) {
  teardown_queue line;
  auto of = std::make_shared<request_context>();
  std::weak_ptr<request_context> known = of;
  auto work = std::make_shared<std::function<void()>>([of] {});
  line.add(std::exchange(of, nullptr), work);
  EXPECT_FALSE(known.expired());
  work.reset();
  EXPECT_TRUE(known.expired());
}
