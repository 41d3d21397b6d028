#include "gpu/process/device_child.hpp"

#include <gtest/gtest.h>

namespace terrace::gpu {
namespace {

TEST(OpenedDevice, NamesAreComparedInOneForm) {
  EXPECT_EQ(canonical_device_name("host").value(), "host");
  auto name = canonical_device_name("A0A1A2A3-a4a5-a6a7-a8a9-aaabacadae00");
  ASSERT_TRUE(name) << name.error().text;
  EXPECT_EQ(*name, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00");
  EXPECT_EQ(canonical_device_name(*name).value(), *name);
  for (const char* wrong : {"", "Host", "GPU-", "0"}) {
    auto refused = canonical_device_name(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, errc::bad_request);
  }
}

TEST(OpenedDevice, ThatOfTheHostNeedsNoDriver) {
  auto opened = open_device(host_device_name);
  ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->opened->allocate(4096));
  EXPECT_NE(opened->description, "");
}

} // namespace
} // namespace terrace::gpu
