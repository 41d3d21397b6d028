#include "runtime/thread_priority.hpp"

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>

namespace terrace::runtime {
namespace {

// Nice value of the calling thread, as Linux counts it.
int nice_here() { return ::getpriority(PRIO_PROCESS, 0); }

TEST(ThreadPriority, IsThatOfTheCallingThreadAlone) {
  int before = nice_here(), within = -1;
  std::thread([&within] {
    be_nice(19);
    within = nice_here();
  }).join();
  EXPECT_EQ(within, std::min(before + 19, 19));
  EXPECT_EQ(nice_here(), before);
}

TEST(ThreadPriority, IsLoweredFromThatOfTheProcess) {
  int before = nice_here(), within = -1;
  std::thread([&within] {
    be_nice(3);
    be_nice(2);
    within = nice_here();
  }).join();
  EXPECT_EQ(within, std::min(before + 5, 19));
}

TEST(ThreadPriority, ZeroLeavesItAsItIs) {
  int before = nice_here(), within = -1;
  std::thread([&within] {
    be_nice(0);
    within = nice_here();
  }).join();
  EXPECT_EQ(within, before);
}

TEST(ThreadPriority, SlicesKeepTheNiceValueAndTheClass) {
  std::thread([] {
    int before = nice_here();
    be_nice(7);
    ask_for_slices(100); // whether the kernel takes them depends on its version
    EXPECT_EQ(nice_here(), std::min(before + 7, 19));
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
    sched_param none{};
    ASSERT_EQ(::sched_setscheduler(0, SCHED_BATCH, &none), 0);
    EXPECT_FALSE(ask_for_slices(100)); // an operator chose another class
    EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
  }).join();
}

} // namespace
} // namespace terrace::runtime
