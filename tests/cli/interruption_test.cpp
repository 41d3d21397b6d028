#include "cli/console.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

namespace terrace::cli {
namespace {

constexpr auto decades = std::chrono::hours(24 * 365 * 30);

TEST(Interruption, IsSetByTheFirstSigint) {
  interruption stop;
  EXPECT_FALSE(stop.requested());
  std::raise(SIGINT);
  EXPECT_TRUE(stop.requested());
}

TEST(Interruption, WakesEverySleeper) {
  interruption stop;
  auto sleep = [&] { stop.sleep_until(std::chrono::steady_clock::now() + decades); };
  std::jthread first(sleep), second(sleep);
  stop.request();
}

TEST(Interruption, SleepsNotAtAllWhenTheTimeHasPassed) {
  interruption stop;
  stop.sleep_until(std::chrono::steady_clock::now() - decades);
  EXPECT_FALSE(stop.requested());
}

TEST(Interruption, LeavesSigintAsItWas) {
  { interruption stop; }
  struct sigaction now {};
  sigaction(SIGINT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

} // namespace
} // namespace terrace::cli
