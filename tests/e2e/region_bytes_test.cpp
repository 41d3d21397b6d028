// The bounds on memory of clients that the daemon maps. The memfds are sparse, so nearly no real memory is
// used.
#include "workload.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace terrace::e2e {
namespace {

constexpr uint64_t tebibyte = 1ULL << 40;

/// Returns a memfd that the daemon maps: sealed against shrinking, and without a touched page.
unique_fd sparse_memory(uint64_t bytes) {
  unique_fd fd(::memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  return fd;
}

result<client::registered_region> register_sparse(tester& by, uint64_t bytes) {
  auto memory = sparse_memory(bytes);
  return by->register_region(memory.get(), bytes, patiently());
}

void expect_refused(const result<client::registered_region>& region, errc code, const std::string& option) {
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().code, code) << region.error().text;
  EXPECT_NE(region.error().text.find(option), std::string::npos) << region.error().text;
}

TEST(RegionBytes, AreBoundedPerConnection) {
  daemon_under_test daemon({.connection = "region_bytes = \"64MiB\"\n"});
  tester client(daemon.socket()); // it has a region of 8 MiB
  tester witness(daemon.socket(), "witness");
  expect_refused(register_sparse(client, 65 * mebibyte), errc::bad_request, "connection.region_bytes");
  expect_refused(register_sparse(client, 57 * mebibyte), errc::busy, "connection.region_bytes (67108864)");
  for (int round = 0; round < 3; ++round) {
    auto region = register_sparse(client, 56 * mebibyte);
    ASSERT_TRUE(region)
        << region.error().text; // its handle unregisters it, so that the bytes may be used again
  }
  EXPECT_TRUE(register_sparse(witness, 56 * mebibyte));
  auto chain = chain_of(1, 4);
  EXPECT_EQ(client.store(chain), 4U);
  EXPECT_EQ(witness.load_and_check(chain), 4U);
}

/// Registers what a connection may still have, so that it has 64 MiB.
void fill(tester& with, std::vector<client::registered_region>& registered) {
  auto region = register_sparse(with, 56 * mebibyte);
  ASSERT_TRUE(region) << region.error().text;
  registered.push_back(std::move(*region));
}

TEST(RegionBytes, AreBoundedPerTrustGroupAndDaemon) {
  temporary_folder folder;
  std::string listen;
  std::vector<std::string> sockets;
  for (int i = 0; i < 5; ++i) {
    sockets.push_back(folder / ("socket" + std::to_string(i)));
    listen += "[[listen]]\npath = \"" + sockets.back() + "\"\ngroup = \"group" + std::to_string(i) + "\"\n";
  }
  // 256 MiB of a group, 1 GiB of all.
  daemon_under_test daemon(
      {.host_bytes = 64 * mebibyte, .listen = listen, .connection = "region_bytes = \"64MiB\"\n"});
  std::vector<client::registered_region> registered;
  std::vector<tester> clients; // each has a region of 8 MiB
  for (const std::string& socket : {sockets[0], sockets[1], sockets[2]})
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back(socket);
      fill(clients.back(), registered);
    }
  tester other(sockets[0]), last(sockets[0]); // 208 MiB in the group
  expect_refused(register_sparse(other, 49 * mebibyte), errc::busy,
                 "4 times connection.region_bytes (268435456)");
  auto of_other = register_sparse(other, 48 * mebibyte);
  ASSERT_TRUE(of_other) << of_other.error().text;
  EXPECT_EQ(last.status().groups.at(0).region_bytes, 256 * mebibyte);
  EXPECT_EQ(last.status().groups.at(0).region_bytes_max, 256 * mebibyte);
  EXPECT_EQ(clients.back().status().groups.at(0).region_bytes, 192 * mebibyte);

  tester third(sockets[4]);
  for (const std::string& socket : {sockets[1], sockets[2], sockets[3], sockets[3], sockets[3]}) {
    clients.emplace_back(socket);
    fill(clients.back(), registered);
  }                          // three groups have 256 MiB each, the fourth 192 MiB, the fifth 8 MiB
  tester fourth(sockets[3]); // 48 MiB are left
  expect_refused(register_sparse(third, 49 * mebibyte), errc::busy,
                 "16 times connection.region_bytes (1073741824)");
  EXPECT_TRUE(register_sparse(third, 48 * mebibyte));
}

TEST(RegionBytes, OneClientCannotUseUpTheAddressSpaceForAll) {
  if (test::sanitized("thread"))
    GTEST_SKIP() << "ThreadSanitizer leaves too little of the address space";
  daemon_under_test daemon;
  tester witness(daemon.socket(), "witness");
  auto chain = chain_of(1, 4);
  witness.store(chain);
  std::vector<tester> greedy;
  std::vector<client::registered_region> registered;
  error refusal;
  for (int i = 0; i < 80 && refusal.code == errc::ok; ++i) { // 160 TiB, more than a process can map
    greedy.emplace_back(daemon.socket(), "greedy", object_bytes);
    auto region = register_sparse(greedy.back(), 2 * tebibyte - 8 * mebibyte);
    if (region)
      registered.push_back(std::move(*region));
    else
      refusal = region.error();
  }
  EXPECT_EQ(registered.size(), 4U);
  EXPECT_EQ(refusal.code, errc::busy);
  EXPECT_NE(refusal.text.find("4 times connection.region_bytes"), std::string::npos) << refusal.text;
  expect_refused(register_sparse(witness, 16 * tebibyte), errc::bad_request, "connection.region_bytes");
  EXPECT_EQ(witness.load_and_check(chain), 4U);
  registered.clear();
  greedy.clear();
  EXPECT_EQ(witness.load_and_check(chain), 4U);
  EXPECT_EQ(daemon.terminate(), 0);
}

/// Limits the daemon to its present address space plus a little.
void freeze(const daemon_under_test& daemon, uint64_t more) {
  uint64_t pages = 0;
  std::ifstream("/proc/" + std::to_string(daemon.pid()) + "/statm") >> pages;
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max = pages * 4096 + more;
  ASSERT_EQ(::prlimit(daemon.pid(), RLIMIT_AS, &limit, nullptr), 0);
}

TEST(RegionBytes, WithoutAddressSpaceOnlyTheRequestThatNeedsItFails) {
  if (test::sanitized())
    GTEST_SKIP() << "sanitizers need address space of their own";
  daemon_under_test daemon;
  tester witness(daemon.socket(), "witness"), client(daemon.socket(), "client");
  auto chain = chain_of(1, 4);
  witness.store(chain);
  freeze(daemon, 4 * mebibyte);
  auto region = register_sparse(client, 1024 * mebibyte);
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().code, errc::no_space) << region.error().text;
  auto other = chain_of(2, 2);
  freeze(daemon, 4 * mebibyte); // a starting thread may have ended, and returned its stack
  auto staged =
      client->reserve({.in = client.space(), .what = client::prefix::of_digests(other)}, patiently());
  ASSERT_FALSE(staged); // staging memory has 8 MiB
  EXPECT_EQ(staged.error().code, errc::no_space) << staged.error().text;
  EXPECT_EQ(client.load_and_check(chain), 4U);
  EXPECT_EQ(witness.load_and_check(chain), 4U);
  EXPECT_EQ(daemon.terminate(), 0);
}

} // namespace
} // namespace terrace::e2e
