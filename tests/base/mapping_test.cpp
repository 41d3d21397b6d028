#include "base/mapping.hpp"

#include "base/unique_fd.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

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
