// Kernels and sandboxes that grant a ring and then refuse to enter it.
#include "runtime/uring.hpp"
#include "support/denied_calls.hpp"
#include "support/runtime_fixture.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

namespace terrace::runtime {
namespace {

using namespace terrace::test;

/// A seccomp filter holds for the thread that sets it, and cannot be removed.
template <class Work>
void in_a_thread(Work work) {
  std::thread(work).join();
}

TEST(LostRing, TheProbeFindsAKernelThatDeniesOnlyEnter) {
  for (uint16_t denied : {EPERM, ENOSYS})
    in_a_thread([denied] {
      ASSERT_TRUE(deny_call(SYS_io_uring_enter, denied));
      auto report = probe_kernel();
      ASSERT_FALSE(report);
      EXPECT_EQ(report.error().code, errc::unsupported);
      EXPECT_NE(report.error().text.find("io_uring_enter failed with E"), std::string::npos)
          << report.error().text;
      EXPECT_NE(report.error().text.find("seccomp"), std::string::npos) << report.error().text;
    });
}

TEST(LostRing, ReportsAnErrorThatLastsAndNotOneThatPasses) {
  in_a_thread([] {
    auto kernel = make_uring({.ring_entries = 8});
    ASSERT_TRUE(kernel) << kernel.error().text;
    operation nothing;
    (*kernel)->start(nothing);
    ASSERT_TRUE(deny_call(SYS_io_uring_enter, EAGAIN));
    EXPECT_EQ((*kernel)->enter(), 0);
    ASSERT_TRUE(deny_call(SYS_io_uring_enter, EACCES));
    EXPECT_EQ((*kernel)->enter(), EACCES);
    EXPECT_EQ((*kernel)->wait(), EACCES);
    (*kernel)->close();
  });
}

/// Ends its worker's right to enter the ring, as soon as it runs there.
caf::behavior denies_itself(homed_actor*) {
  EXPECT_TRUE(deny_call(SYS_io_uring_enter, EPERM));
  return {[](int) {}};
}

TEST(LostRingDeathTest, AWorkerWithoutItsRingEndsTheProcessWithTheReason) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto lose = [] {
    runtime_options options{.workers = 2};
    options.ring_lost = [](const error& why) {
      std::fprintf(stderr, "%s\n", why.text.c_str());
      std::_Exit(7);
    };
    runtime_system sys{options};
    if (!sys.pool().wait_started())
      std::_Exit(8);
    auto actor = spawn_homed(*sys, sys.pool().at(1), denies_itself);
    sys->await_all_actors_done();
  };
  EXPECT_EXIT(lose(), ::testing::ExitedWithCode(7), "worker 1: .*io_uring_enter failed with EPERM");
}

} // namespace
} // namespace terrace::runtime
