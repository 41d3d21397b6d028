#include "runtime/uring.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace terrace::runtime {
namespace {

TEST(KernelProbe, SaysWhatThisKernelGrants) {
  auto report = probe_kernel();
  ASSERT_TRUE(report) << report.error().text;
  EXPECT_FALSE(report->release.empty());
  EXPECT_NE(report->describe().find("io_uring with"), std::string::npos) << report->describe();
}

TEST(KernelProbe, ADenialNamesTheSysctlAndTheSeccompProfileInOneLine) {
  for (int denied : {EPERM, ENOSYS}) {
    auto text = explain_ring_error("io_uring_setup", denied);
    EXPECT_NE(text.find("kernel.io_uring_disabled"), std::string::npos) << text;
    EXPECT_NE(text.find("seccomp"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
  EXPECT_NE(explain_ring_error("io_uring_setup", EPERM).find("EPERM"), std::string::npos);
  EXPECT_NE(explain_ring_error("io_uring_setup", ENOSYS).find("ENOSYS"), std::string::npos);
}

TEST(KernelProbe, EveryOtherErrorSaysWhatToRaise) {
  EXPECT_NE(explain_ring_error("io_uring_setup", ENOMEM).find("RLIMIT_MEMLOCK"), std::string::npos);
  EXPECT_NE(explain_ring_error("io_uring_setup", EMFILE).find("RLIMIT_NOFILE"), std::string::npos);
  EXPECT_NE(explain_ring_error("io_uring_setup", EFAULT).find(std::to_string(EFAULT)), std::string::npos);
}

} // namespace
} // namespace terrace::runtime
