#include "runtime/turn_times.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace terrace::runtime {
namespace {

/// Spends processor time until the steady clock, which counts waiting as well, has advanced by `at_least`.
void work(std::chrono::milliseconds at_least) {
  auto end = std::chrono::steady_clock::now() + at_least;
  volatile uint64_t steps = 0;
  while (std::chrono::steady_clock::now() < end)
    steps = steps + 1;
}

TEST(TurnLimitDeathTest, ATurnThatTakesTooLongEndsTheProcessAndNamesTheActor) {
  EXPECT_DEATH(
      {
        turn_limit limit(1'000'000);
        limit.begin();
        for (;;) { // until the thread has used that much processor time
          work(std::chrono::milliseconds(10));
          limit.end("slow");
        }
      },
      "the actor slow took .* expected at most 1000");
}

TEST(TurnLimit, WaitingIsNotCounted) {
  turn_limit limit(50'000'000);
  limit.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  limit.end("patient");
}

TEST(TurnLimit, WithoutOneTurnsMayTakeAnyTime) {
  turn_limit none(0);
  none.begin();
  work(std::chrono::milliseconds(5));
  none.end("slow");
}

} // namespace
} // namespace terrace::runtime
