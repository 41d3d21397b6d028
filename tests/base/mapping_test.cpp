#include "base/mapping.hpp"

#include "base/unique_fd.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

namespace terrace {
namespace {

unique_fd memory(off_t bytes, unsigned flags = 0) {
  unique_fd fd(::memfd_create("mapping-test", MFD_CLOEXEC | flags));
  EXPECT_EQ(::ftruncate(fd.get(), bytes), 0);
  return fd;
}

TEST(Mapping, SharesItsBytesAndOutlivesTheDescriptor) {
  auto fd = memory(8192);
  auto writer = mapping::map(fd.get(), 8192, true);
  auto reader = mapping::map(fd.get(), 8192, false);
  ASSERT_TRUE(writer && reader);
  fd.reset();
  writer->bytes()[8191] = std::byte{7};
  EXPECT_EQ(reader->bytes()[8191], std::byte{7});
}

TEST(Mapping, MovesWithItsBytes) {
  auto fd = memory(4096);
  auto first = mapping::map(fd.get(), 4096, true);
  ASSERT_TRUE(first);
  std::byte* at = first->data();
  mapping second = std::move(*first);
  EXPECT_FALSE(*first);
  EXPECT_EQ(second.data(), at);
  mapping third;
  third = std::move(second);
  EXPECT_EQ(third.size(), 4096u);
}

TEST(Mapping, BeginsWhereALargePageMay) {
  constexpr uint64_t unit = 2 << 20;
  for (uint64_t bytes : {unit, unit + 1, 5 * unit - 4096}) {
    auto fd = memory(static_cast<off_t>(bytes));
    auto made = mapping::map(fd.get(), bytes, true);
    ASSERT_TRUE(made);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(made->data()) % unit, 0U);
    made->bytes()[bytes - 1] = std::byte{1}; // all of it is mapped, and belongs to the file
    std::byte last{};
    EXPECT_EQ(::pread(fd.get(), &last, 1, static_cast<off_t>(bytes - 1)), 1);
    EXPECT_EQ(last, std::byte{1});
  }
}

/// Nothing is left of the address space that was reserved around it, even if mapping fails.
TEST(Mapping, LeavesNothingBehind) {
  auto mapped_bytes = [] {
    std::ifstream statm("/proc/self/statm");
    uint64_t pages = 0;
    statm >> pages;
    return pages;
  };
  constexpr uint64_t bytes = 64 << 20;
  auto fd = memory(bytes, MFD_ALLOW_SEALING);
  const uint64_t before = mapped_bytes();
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(mapping::map(fd.get(), bytes, true));
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  for (int i = 0; i < 100; ++i)
    ASSERT_FALSE(mapping::map(fd.get(), bytes, true));
  EXPECT_LT(mapped_bytes(), before + bytes / 4096);
}

TEST(Mapping, IsDeniedWhereASealForbidsWriting) {
  auto fd = memory(4096, MFD_ALLOW_SEALING);
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  auto writer = mapping::map(fd.get(), 4096, true);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, errc::denied);
  EXPECT_TRUE(mapping::map(fd.get(), 4096, false));
}

} // namespace
} // namespace terrace
