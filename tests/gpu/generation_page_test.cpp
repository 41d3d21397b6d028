#include "gpu/generation_page.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace terrace::gpu {
namespace {

TEST(Generation, IsComparedAsACircle) {
  EXPECT_TRUE(reached(5, 5));
  EXPECT_TRUE(reached(6, 5));
  EXPECT_FALSE(reached(4, 5));
  EXPECT_TRUE(reached(2, 0xfffffffe));
  EXPECT_FALSE(reached(0xfffffffe, 2));
}

TEST(GenerationPage, BeginsWithZeros) {
  auto page = generation_page::make(10).value();
  EXPECT_EQ(page.slots(), 10u);
  for (uint32_t i = 0; i < 10; ++i)
    EXPECT_EQ(page.value(i), 0u);
}

TEST(GenerationPage, HasBounds) {
  EXPECT_EQ(generation_page::make(0).error().code, errc::bad_request);
  EXPECT_EQ(generation_page::make(generation_page::slots_max + 1).error().code, errc::bad_request);
  EXPECT_TRUE(generation_page::make(generation_page::slots_max));
}

TEST(GenerationPage, IsSharedByItsDescriptor) {
  auto first = generation_page::make(4).value();
  auto second = generation_page::open(unique_fd(fcntl(first.descriptor(), F_DUPFD_CLOEXEC, 0))).value();
  first.write({3, 9});
  EXPECT_EQ(second.value(3), 9u);
  EXPECT_EQ(second.slots(), 4u);
}

TEST(GenerationPage, IsRefusedWhenItCouldShrink) {
  unique_fd unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_EQ(generation_page::open(std::move(unsealed)).error().code, errc::denied);
  EXPECT_FALSE(generation_page::open(unique_fd(open("/dev/zero", O_RDWR | O_CLOEXEC))));
}

TEST(GenerationPage, AWaiterThatComesFirstSeesWhatCameBefore) {
  auto page = generation_page::make(2).value();
  std::vector<int> layer(1000, 0);
  std::thread reader([&] {
    page.wait({1, 3});
    for (int value : layer)
      EXPECT_EQ(value, 3);
    page.write({0, 3});
  });
  page.write({1, 1});
  page.write({1, 2});
  for (auto& value : layer)
    value = 3;
  page.write({1, 3});
  page.wait({0, 3});
  reader.join();
}

TEST(GenerationPage, AdvanceNeverGoesBack) {
  auto page = generation_page::make(1).value();
  page.write({0, 7});
  page.advance({0, 5});
  EXPECT_EQ(page.value(0), 7u);
  page.advance({0, 8});
  EXPECT_EQ(page.value(0), 8u);
}

} // namespace
} // namespace terrace::gpu
