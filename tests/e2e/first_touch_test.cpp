// Regions are mapped ahead of copies: what a client sees of it.
#include "workload.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace terrace::e2e {
namespace {

constexpr uint64_t page = 4096;
constexpr uint64_t gibibyte = 1ULL << 30;

/// Sealed, without a page.
unique_fd empty_memory(uint64_t bytes) {
  unique_fd fd(::memfd_create("touched", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  return fd;
}

uint64_t bytes_that_exist(int fd) {
  struct stat info {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

TEST(FirstTouch, ASparseRegionStaysSparse) {
  daemon_under_test daemon;
  auto memory = empty_memory(64 * gibibyte);
  for (uint64_t at : {uint64_t{0}, 3 * gibibyte, 64 * gibibyte - page})
    ASSERT_EQ(::pwrite(memory.get(), "kv", 2, static_cast<off_t>(at)), 2);
  {
    tester client(daemon.socket());
    auto chain = chain_of(1, 8);
    std::vector<client::registered_region> regions;
    for (int i = 0; i < 4; ++i) // each is mapped and looked through, and some end before that
      if (auto region = client->register_region(memory.get(), 64 * gibibyte, patiently()); i % 2 == 0)
        regions.push_back(std::move(region.value()));
    EXPECT_EQ(client.store(chain), 8U);
    EXPECT_EQ(client.load_and_check(chain), 8U);
  }
  EXPECT_EQ(daemon.terminate(), 0); // from here on nobody maps anything
  EXPECT_EQ(bytes_that_exist(memory.get()), 3 * page);
}

TEST(FirstTouch, WhatIsWrittenAfterTheRegistrationIsStoredAsItIs) {
  daemon_under_test daemon({.host_bytes = 64 * mebibyte});
  tester client(daemon.socket(), "client", 16 * object_bytes);
  for (uint64_t round = 1; round <= 4; ++round) { // of the same region, more of it each time
    auto chain = chain_of(round, 4 * round);
    EXPECT_EQ(client.store(chain), 4 * round);
    EXPECT_EQ(client.load_and_check(chain), 4 * round);
  }
}

} // namespace
} // namespace terrace::e2e
