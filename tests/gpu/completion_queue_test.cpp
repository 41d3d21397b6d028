#include "gpu/copy_request.hpp"

#include <gtest/gtest.h>

#include <poll.h>

#include <thread>

namespace terrace::gpu {
namespace {

bool readable(const completion_queue& queue, int timeout_ms = 0) {
  pollfd watched{queue.descriptor(), POLLIN, 0};
  return poll(&watched, 1, timeout_ms) == 1;
}

TEST(CompletionQueue, IsReadableWhileSomethingWaits) {
  auto queue = completion_queue::make().value();
  EXPECT_FALSE(readable(*queue));
  EXPECT_TRUE(queue->take().empty());
  queue->push({1, {}});
  queue->push({2, error{errc::internal, "why"}});
  EXPECT_TRUE(readable(*queue));
  auto taken = queue->take();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].ticket, 1u);
  EXPECT_EQ(taken[1].failure->text, "why");
  EXPECT_FALSE(readable(*queue));
}

TEST(CompletionQueue, ASignalWakesWithoutAPart) {
  auto queue = completion_queue::make().value();
  queue->signal();
  EXPECT_TRUE(readable(*queue));
  EXPECT_TRUE(queue->take().empty());
}

TEST(CompletionQueue, LosesNothingBetweenThreads) {
  auto queue = completion_queue::make().value();
  constexpr uint64_t count = 5000;
  std::thread writer([&] {
    for (uint64_t i = 1; i <= count; ++i)
      queue->push({i, {}});
  });
  uint64_t next = 1;
  while (next <= count) {
    ASSERT_TRUE(readable(*queue, -1));
    for (const auto& one : queue->take())
      ASSERT_EQ(one.ticket, next++);
  }
  writer.join();
}

} // namespace
} // namespace terrace::gpu
