#include "runtime/thread_priority.hpp"

#include <gtest/gtest.h>

#include <pthread.h>
#include <sched.h>

#include <string>
#include <thread>

namespace terrace::runtime {
namespace {

std::string name_of_this_thread() {
  char name[16] = {};
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  return name;
}

TEST(WorkerThread, HasAName) {
  std::thread([] {
    prepare_worker_thread("worker-3", 0);
    EXPECT_EQ(name_of_this_thread(), "worker-3");
  }).join();
}

TEST(WorkerThread, KeepsAnotherSchedulingClassThatAnOperatorChose) {
  std::thread([] {
    sched_param none{};
    ASSERT_EQ(::sched_setscheduler(0, SCHED_BATCH, &none), 0);
    EXPECT_FALSE(prepare_worker_thread("worker-0", 100));
    EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
  }).join();
}

TEST(WorkerThread, StaysInTheFairClassWithShortSlices) {
  std::thread([] {
    prepare_worker_thread("worker-0", 100); // whether the kernel takes them depends on its version
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
  }).join();
}

} // namespace
} // namespace terrace::runtime
