#include "scripted_daemon.hpp"

#include <fcntl.h>
#include <sys/stat.h>

using namespace terrace;
using namespace terrace::client;
using namespace terrace::client::test;

TEST(Region, IsSealedAgainstShrinkingAndGrowing) {
  auto memory = region::create("test", 4096);
  ASSERT_FINE(memory);
  EXPECT_EQ(::ftruncate(memory->descriptor(), 0), -1);
  EXPECT_EQ(::ftruncate(memory->descriptor(), 8192), -1);
  EXPECT_EQ(::fcntl(memory->descriptor(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  memory->bytes()[4095] = 1;
}

TEST(Region, CanBeMoved) {
  auto made = region::create("test", 4096);
  ASSERT_FINE(made);
  auto* data = made->data();
  region moved = std::move(*made);
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(made->data(), nullptr);
  moved.data()[0] = 1;
}

TEST(Region, OfNoBytesIsRefused) {
  EXPECT_FAILS(region::create("test", 0), errc::bad_request, "at least one byte");
}

TEST(Region, TooLargeForThisMachineIsRefused) {
  EXPECT_FAILS(region::create("test", 1ULL << 62), errc::no_space, "cannot map");
}

TEST(Region, CanBeCommittedAsAWhole) {
  auto memory = region::create("test", 100'000);
  ASSERT_FINE(memory);
  auto committed = memory->commit();
  if (!committed && committed.error().code == errc::unsupported)
    GTEST_SKIP() << committed.error().text;
  ASSERT_FINE(committed);
  struct stat info {};
  ASSERT_EQ(::fstat(memory->descriptor(), &info), 0);
  EXPECT_GE(static_cast<uint64_t>(info.st_blocks) * 512, 100'000u);
  EXPECT_EQ(memory->bytes()[99'999], 0);
  EXPECT_TRUE(region().commit());
}
