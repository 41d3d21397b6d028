#include "memory/arena.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace terrace::test {
namespace {

constexpr uint64_t mib = 1 << 20;

TEST(Arena, IsReadAndNotWrittenThroughAnotherDescriptor) {
  auto made = arena::create({.bytes = mib}).value();
  auto fd = made.duplicate().value();
  auto client = mapping::map(fd.get(), mib, false).value();
  std::memcpy(made.data() + 4096, "terrace", 7);
  EXPECT_EQ(std::memcmp(client.data() + 4096, "terrace", 7), 0);

  auto writable = mapping::map(fd.get(), mib, true);
  ASSERT_FALSE(writable);
  EXPECT_EQ(writable.error().code, errc::denied);
  EXPECT_NE(::mprotect(client.data(), mib, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(::pwrite(fd.get(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(Arena, CannotBeReopenedForWriting) {
  auto made = arena::create({.bytes = mib}).value();
  auto path = "/proc/self/fd/" + std::to_string(made.fd());
  unique_fd again(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(again);
  EXPECT_FALSE(mapping::map(again.get(), mib, true));
  EXPECT_EQ(::fallocate(again.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
}

TEST(Arena, CanNeitherShrinkNorGrowNorLoseItsSeals) {
  for (bool client_may_write : {false, true}) {
    auto made = arena::create({.bytes = mib, .client_may_write = client_may_write}).value();
    EXPECT_EQ(::ftruncate(made.fd(), 4096), -1);
    EXPECT_EQ(::ftruncate(made.fd(), 2 * mib), -1);
    EXPECT_EQ(::fcntl(made.fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);
    EXPECT_EQ(::fcntl(made.fd(), F_GET_SEALS) & F_SEAL_SEAL, F_SEAL_SEAL);
  }
}

TEST(Arena, IsWritableForClientsWhenItIsStaging) {
  auto made = arena::create({.bytes = mib, .client_may_write = true}).value();
  auto fd = made.duplicate().value();
  auto client = mapping::map(fd.get(), mib, true).value();
  client.data()[9] = std::byte{7};
  EXPECT_EQ(made.data()[9], std::byte{7});
}

TEST(Arena, HandsOutDescriptorsThatCloseOnExec) {
  auto made = arena::create({.bytes = mib}).value();
  auto fd = made.duplicate().value();
  EXPECT_NE(fd.get(), made.fd());
  EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::fcntl(made.fd(), F_GETFD), FD_CLOEXEC);
}

TEST(Arena, IsCommittedInPieces) {
  auto made = arena::create({.bytes = mib}).value();
  std::memset(made.data(), 5, mib / 2);
  EXPECT_FALSE(made.prefault(mib / 4 + 1).value());
  EXPECT_EQ(made.prefaulted_bytes(), mib / 4 + 4096); // whole pages
  EXPECT_FALSE(made.prefault(mib / 4).value());
  EXPECT_TRUE(made.prefault(~uint64_t{0}).value());
  EXPECT_TRUE(made.prefault(1).value());
  std::vector<unsigned char> resident(mib / 4096);
  ASSERT_EQ(::mincore(made.data(), mib, resident.data()), 0);
  for (unsigned char page : resident)
    EXPECT_EQ(page & 1, 1);
  EXPECT_EQ(made.data()[mib / 2 - 1], std::byte{5}); // written bytes stay
}

TEST(Arena, WhatWasTouchedIsResident) {
  auto made = arena::create({.bytes = 64 * mib}).value();
  EXPECT_FALSE(all_resident(made.data(), made.size()));
  std::memset(made.data(), 1, mib);
  EXPECT_TRUE(all_resident(made.data(), mib));
  EXPECT_FALSE(all_resident(made.data(), made.size()));
  while (!made.prefault(16 * mib).value()) {
  }
  EXPECT_TRUE(all_resident(made.data(), made.size()));
}

TEST(Arena, FallsBackFromHugePagesAndSaysWhy) {
  // More than any machine's pool: 1 TiB of huge pages.
  auto made = arena::create({.bytes = 1ULL << 40, .huge_pages = true}).value();
  EXPECT_FALSE(made.huge_pages());
  EXPECT_NE(made.huge_pages_refusal().find("vm.nr_hugepages"), std::string::npos)
      << made.huge_pages_refusal();
  EXPECT_EQ(made.size(), 1ULL << 40);
}

TEST(Arena, RefusesSizesThatAreNotWholePages) {
  for (arena_options options : {arena_options{.bytes = 0}, arena_options{.bytes = 4095},
                                arena_options{.bytes = mib, .huge_pages = true},
                                arena_options{.name = std::string(201, 'x'), .bytes = mib}}) {
    auto made = arena::create(options);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, errc::bad_request);
  }
}

TEST(Arena, SaysWhenTheKernelHasNoRoomForIt) {
  auto made = arena::create({.bytes = 1ULL << 47}); // the whole address space of a process
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errc::no_space);
}

} // namespace
} // namespace terrace::test
