#include "memory/client_mapping.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

namespace terrace::test {
namespace {

constexpr uint64_t size = 64 << 10;

unique_fd memory_of(uint64_t bytes, int seals) {
  unique_fd fd(::memfd_create("client", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

error refusal(unique_fd fd, uint64_t bytes) {
  auto region = client_region::open(std::move(fd), bytes);
  EXPECT_FALSE(region);
  return region ? error{} : region.error();
}

TEST(ClientRegion, IsMappedWhenItCannotShrink) {
  auto fd = memory_of(size, F_SEAL_SHRINK);
  EXPECT_EQ(::pwrite(fd.get(), "kv", 2, 100), 2);
  auto region = client_region::open(std::move(fd), size - 1).value();
  ASSERT_TRUE(region->mapped());
  EXPECT_TRUE(region->writable());
  EXPECT_EQ(region->size(), size - 1);
  EXPECT_EQ(region->data()[100], std::byte{'k'});
}

TEST(ClientRegion, IsUsedThroughItsDescriptorWhenItMayShrink) {
  auto region = client_region::open(memory_of(size, 0), size).value();
  EXPECT_FALSE(region->mapped());
  EXPECT_TRUE(region->writable());
  EXPECT_NE(region->why_not_mapped().find("F_SEAL_SHRINK"), std::string::npos);
  ASSERT_EQ(::ftruncate(region->fd(), 0), 0); // the client may do this
  char byte;
  EXPECT_EQ(::pread(region->fd(), &byte, 1, 0), 0); // returns a short count instead of raising SIGBUS
}

TEST(ClientRegion, IsReadOnlyWhenItIsSealed) {
  auto sealed = client_region::open(memory_of(size, F_SEAL_SHRINK | F_SEAL_WRITE), size).value();
  EXPECT_TRUE(sealed->mapped());
  EXPECT_FALSE(sealed->writable());
}

TEST(ClientRegion, OutlivesItsFirstOwner) {
  auto first = client_region::open(memory_of(size, F_SEAL_SHRINK), size).value();
  auto second = first;
  first.reset();
  second->data()[size - 1] = std::byte{1};
  EXPECT_EQ(second->data()[size - 1], std::byte{1});
}

TEST(ClientRegion, RefusesAMemfdShorterThanDeclared) {
  for (int seals : {0, F_SEAL_SHRINK}) {
    auto refused = refusal(memory_of(size, seals), size + 1);
    EXPECT_EQ(refused.code, errc::bad_request);
    EXPECT_NE(refused.text.find(std::to_string(size)), std::string::npos) << refused.text;
  }
  EXPECT_EQ(refusal(memory_of(size, 0), 0).code, errc::bad_request);
}

TEST(ClientRegion, RefusesWhatIsNotSharedMemory) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  unique_fd read_end(ends[0]), write_end(ends[1]);
  EXPECT_NE(refusal(std::move(read_end), size).text.find("a pipe: expected a memfd"), std::string::npos);
  EXPECT_NE(refusal(unique_fd(::open("/", O_RDONLY | O_CLOEXEC)), size).text.find("a directory"),
            std::string::npos);
  EXPECT_NE(refusal(unique_fd(::open("/dev/zero", O_RDWR | O_CLOEXEC)), size).text.find("special file"),
            std::string::npos);
  EXPECT_NE(
      refusal(unique_fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), 1).text.find("not shared memory"),
      std::string::npos);
  EXPECT_EQ(refusal(unique_fd(), size).code, errc::bad_request);
}

TEST(ClientRegion, RefusesDescriptorsByTheNameOfTheirFlag) {
  auto fd = memory_of(size, F_SEAL_SHRINK);
  auto opened = [&](int flags) {
    return unique_fd(::open(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), flags | O_CLOEXEC));
  };
  for (auto [flags, name] :
       {std::pair{O_WRONLY, "O_WRONLY"}, {O_RDONLY, "O_RDONLY"}, {O_RDWR | O_APPEND, "O_APPEND"}}) {
    auto refused = refusal(opened(flags), size);
    EXPECT_EQ(refused.code, errc::bad_request);
    EXPECT_NE(refused.text.find(name), std::string::npos) << refused.text;
  }
  EXPECT_TRUE(client_region::open(opened(O_RDWR), size));
}

} // namespace
} // namespace terrace::test
