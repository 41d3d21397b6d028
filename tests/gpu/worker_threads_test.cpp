#include "gpu/worker_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace terrace::gpu {
namespace {

TEST(WorkerThreads, JobsRunAtTheSameTime) {
  worker_threads threads(3);
  std::latch together(3);
  for (int i = 0; i < 3; ++i)
    threads.add([&] { together.arrive_and_wait(); });
  together.wait();
}

TEST(WorkerThreads, TheEndWaitsForAllJobs) {
  std::atomic<int> done{0};
  {
    worker_threads threads(2);
    for (int i = 0; i < 100; ++i)
      threads.add([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(WorkerThreads, WhatAJobHasEndsWithIt) {
  worker_threads threads(1);
  auto shared = std::make_shared<int>(1);
  std::weak_ptr<int> seen = shared;
  std::latch over(1);
  threads.add([shared = std::move(shared)] {});
  threads.add([&] { over.count_down(); });
  over.wait();
  EXPECT_TRUE(seen.expired());
}

} // namespace
} // namespace terrace::gpu
