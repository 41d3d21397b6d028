#include "runtime/thread_priority.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <thread>

namespace terrace::runtime {
namespace {

int nice_here() { return ::getpriority(PRIO_PROCESS, 0); } // of the calling thread, on Linux

TEST(ThreadPriority, IsThatOfTheCallingThreadAlone) {
  int before = nice_here(), within = -1;
  std::thread([&within] {
    be_nice(19);
    within = nice_here();
  }).join();
  EXPECT_EQ(within, 19);
  EXPECT_EQ(nice_here(), before);
}

TEST(ThreadPriority, ZeroLeavesItAsItIs) {
  int before = nice_here(), within = -1;
  std::thread([&within] {
    be_nice(0);
    within = nice_here();
  }).join();
  EXPECT_EQ(within, before);
}

} // namespace
} // namespace terrace::runtime
