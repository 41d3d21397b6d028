// Chains longer than host memory, and chains that are not worth writing to disk.
#include "workload.hpp"

namespace terrace::e2e {
namespace {

constexpr uint64_t host_bytes = 32 * mebibyte;
constexpr size_t long_chain = 80;

TEST(DiskStreams, AChainLongerThanHostMemoryIsStoredAndLoadedInOneRequestEach) {
  daemon_under_test daemon({.host_bytes = host_bytes, .disk_bytes = 128 * mebibyte});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket(), "long", long_chain * object_bytes);
  auto chain = chain_of(1, long_chain);
  EXPECT_EQ(client.store(chain), long_chain);
  occupy(client, 100, objects_in(host_bytes)); // afterwards the whole chain is on disk
  EXPECT_EQ(client.lookup(chain).found_chunks, long_chain);
  EXPECT_EQ(client.load_and_check(chain), long_chain);
  EXPECT_EQ(client.load_and_check(chain), long_chain); // partly from host memory
  auto host = client.tier("host");
  EXPECT_LE(host.used_bytes, host.capacity_bytes);
  EXPECT_EQ(host.leased_objects, 0U);
}

TEST(DiskStreams, AChainLongerThanHostMemoryIsLoadedUnderItsLease) {
  daemon_under_test daemon({.host_bytes = host_bytes, .disk_bytes = 128 * mebibyte});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket(), "long", long_chain * object_bytes);
  auto chain = chain_of(1, long_chain);
  EXPECT_EQ(client.store(chain), long_chain);
  while (client.tier("disk").objects < long_chain) // waits until the last object is written
    ;
  auto lease = client.lookup(chain, true);
  EXPECT_EQ(lease.found_chunks, long_chain);
  EXPECT_EQ(client.load_and_check(chain), long_chain) << "while the lease is held";
}

TEST(DiskStreams, ALongChainLeavesOthersInHostMemory) {
  daemon_under_test daemon({.host_bytes = host_bytes, .disk_bytes = 128 * mebibyte});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket(), "long", long_chain * object_bytes);
  auto chain = chain_of(1, long_chain);
  client.store(chain);
  occupy(client, 100, objects_in(host_bytes));
  auto other = chain_of(2, 4);
  client.store(other);
  EXPECT_EQ(client.load_and_check(chain), long_chain);
  EXPECT_EQ(client.lookup(other, false, on_host).found_chunks, 4U);
}

TEST(DiskStreams, TheDaysBudgetEndsWritingToDisk) {
  daemon_under_test daemon(
      {.host_bytes = host_bytes, .disk_bytes = 128 * mebibyte, .disk = "write_bytes_per_day = \"96MiB\"\n"});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto chain = chain_of(1, 8);
  EXPECT_EQ(client.store(chain), 8U);
  occupy(client, 100, objects_in(host_bytes));
  EXPECT_EQ(client.lookup(chain).found_chunks, 3U); // an hour's worth: 4 MiB with headers
  EXPECT_EQ(client.load_and_check(chain), 3U);
}

TEST(DiskStreams, SeenTwiceWritesWhatIsUsedAgain) {
  daemon_under_test daemon(
      {.host_bytes = host_bytes, .disk_bytes = 128 * mebibyte, .disk = "admission = \"seen_twice\"\n"});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto once = chain_of(1, 4);
  auto twice = chain_of(2, 4);
  client.store(once);
  client.store(twice);
  EXPECT_EQ(client.load_and_check(twice), 4U);
  occupy(client, 100, objects_in(host_bytes));
  EXPECT_EQ(client.lookup(once).found_chunks, 0U);
  EXPECT_EQ(client.lookup(twice).found_chunks, 4U);
  EXPECT_EQ(client.load_and_check(twice), 4U);
}

} // namespace
} // namespace terrace::e2e
