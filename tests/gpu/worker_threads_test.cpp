#include "gpu/worker_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace terrace::gpu {
namespace {

TEST(WorkerThreads, JobsRunAtTheSameTime) {
  auto threads = worker_threads::make(3).value();
  std::latch together(3);
  for (int i = 0; i < 3; ++i)
    threads->add([&] { together.arrive_and_wait(); });
  together.wait();
}

TEST(WorkerThreads, TheEndWaitsForAllJobs) {
  std::atomic<int> done{0};
  {
    auto threads = worker_threads::make(2).value();
    for (int i = 0; i < 100; ++i)
      threads->add([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(WorkerThreads, WhatAJobHasEndsWithIt) {
  auto threads = worker_threads::make(1).value();
  auto shared = std::make_shared<int>(1);
  std::weak_ptr<int> seen = shared;
  std::latch over(1);
  threads->add([shared = std::move(shared)] {});
  threads->add([&] { over.count_down(); });
  over.wait();
  EXPECT_TRUE(seen.expired());
}

TEST(WorkerThreads, ThreadsThatTheSystemDoesNotHaveAreAnError) {
  int started = 0;
  auto refused = worker_threads::make(3, [&](std::function<void()> what) {
    if (++started == 3)
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    return std::thread(std::move(what));
  });
  ASSERT_FALSE(refused); // the first two have ended
  EXPECT_EQ(refused.error().code, errc::no_space);
}

} // namespace
} // namespace terrace::gpu
