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
constexpr uint64_t own_bytes = 8 * mebibyte;                    // the region that each tester has
constexpr uint64_t rest_bytes = 2 * tebibyte - own_bytes;       // what it may register beside it
constexpr const char* connection_bound = "2199023255552";       // 2 TiB
constexpr const char* group_bound = "bound of 8796093022208";   // 8 TiB
constexpr const char* daemon_bound = "bound of 35184372088832"; // 32 TiB

/// ThreadSanitizer leaves too little of the address space to map terabytes.
bool can_map_terabytes() { return !test::sanitized("thread"); }

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

void expect_refused(const result<client::registered_region>& region, errc code, const std::string& bound) {
  ASSERT_FALSE(region);
  EXPECT_EQ(region.error().code, code) << region.error().text;
  EXPECT_NE(region.error().text.find(bound), std::string::npos) << region.error().text;
}

TEST(RegionBytes, AreBoundedPerConnection) {
  if (!can_map_terabytes())
    GTEST_SKIP();
  daemon_under_test daemon;
  tester client(daemon.socket());
  tester witness(daemon.socket(), "witness");
  expect_refused(register_sparse(client, 2 * tebibyte + mebibyte), errc::bad_request, connection_bound);
  expect_refused(register_sparse(client, rest_bytes + mebibyte), errc::busy, connection_bound);
  for (int round = 0; round < 3; ++round) {
    auto region = register_sparse(client, rest_bytes);
    ASSERT_TRUE(region)
        << region.error().text; // its handle unregisters it, so that the bytes may be used again
  }
  EXPECT_TRUE(register_sparse(witness, rest_bytes));
  auto chain = chain_of(1, 4);
  EXPECT_EQ(client.store(chain), 4U);
  EXPECT_EQ(witness.load_and_check(chain), 4U);
}

/// Registers what a connection may still have, so that it has 2 TiB.
void fill(tester& with, std::vector<client::registered_region>& registered) {
  auto region = register_sparse(with, rest_bytes);
  ASSERT_TRUE(region) << region.error().text;
  registered.push_back(std::move(*region));
}

TEST(RegionBytes, AreBoundedPerTrustGroupAndDaemon) {
  if (!can_map_terabytes())
    GTEST_SKIP();
  temporary_folder folder;
  std::string listen;
  std::vector<std::string> sockets;
  for (int i = 0; i < 5; ++i) {
    sockets.push_back(folder / ("socket" + std::to_string(i)));
    listen += "[[listen]]\npath = \"" + sockets.back() + "\"\ngroup = \"group" + std::to_string(i) + "\"\n";
  }
  daemon_under_test daemon({.host_bytes = 64 * mebibyte, .listen = listen});
  std::vector<client::registered_region> registered;
  std::vector<tester> clients;
  for (const std::string& socket : {sockets[0], sockets[1], sockets[2]})
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back(socket);
      fill(clients.back(), registered);
    }
  tester other(sockets[0]), last(sockets[0]);
  constexpr uint64_t left = 2 * tebibyte - 2 * own_bytes; // of the group
  expect_refused(register_sparse(other, left + mebibyte), errc::busy, group_bound);
  auto of_other = register_sparse(other, left);
  ASSERT_TRUE(of_other) << of_other.error().text;
  EXPECT_EQ(last.status().groups.at(0).region_bytes, 8 * tebibyte);
  EXPECT_EQ(last.status().groups.at(0).region_bytes_max, 8 * tebibyte);
  EXPECT_EQ(clients.back().status().groups.at(0).region_bytes, 6 * tebibyte);

  tester third(sockets[4]);
  for (const std::string& socket : {sockets[1], sockets[2], sockets[3], sockets[3], sockets[3]}) {
    clients.emplace_back(socket);
    fill(clients.back(), registered);
  } // three groups have 8 TiB each, the fourth 6 TiB, the fifth 8 MiB
  tester fourth(sockets[3]);
  expect_refused(register_sparse(third, left + mebibyte), errc::busy, daemon_bound);
  EXPECT_TRUE(register_sparse(third, left));
}

TEST(RegionBytes, OneClientCannotUseUpTheAddressSpaceForAll) {
  if (!can_map_terabytes())
    GTEST_SKIP();
  daemon_under_test daemon;
  tester witness(daemon.socket(), "witness");
  auto chain = chain_of(1, 4);
  witness.store(chain);
  std::vector<tester> greedy;
  std::vector<client::registered_region> registered;
  error refusal;
  for (int i = 0; i < 80 && refusal.code == errc::ok; ++i) { // 160 TiB, more than a process can map
    greedy.emplace_back(daemon.socket(), "greedy", object_bytes);
    auto region = register_sparse(greedy.back(), rest_bytes);
    if (region)
      registered.push_back(std::move(*region));
    else
      refusal = region.error();
  }
  EXPECT_EQ(registered.size(), 4U);
  EXPECT_EQ(refusal.code, errc::busy);
  EXPECT_NE(refusal.text.find(group_bound), std::string::npos) << refusal.text;
  expect_refused(register_sparse(witness, 16 * tebibyte), errc::bad_request, connection_bound);
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
