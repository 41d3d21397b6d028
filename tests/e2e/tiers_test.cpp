// Host memory and disk together.
#include "workload.hpp"

#include <sys/mount.h>

namespace terrace::e2e {
namespace tiers_test {

const daemon_options with_disk{.disk_bytes = 128 * mebibyte};

TEST(Tiers, PrefixIsFoundOnDiskAfterHostMemoryEvictedItAndComesBackBitForBit) {
  daemon_under_test daemon(with_disk);
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto chain = chain_of(1, 4);
  client.store(chain);
  // Leased objects fill host memory. By then the earlier ones are on disk, because they are held until then.
  auto held = occupy(client, 100, objects_in(32 * mebibyte));
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 0U);
  auto found = client.lookup(chain);
  EXPECT_EQ(found.found_chunks, 4U);
  EXPECT_EQ(found.tiers, std::vector<tier_kind>(4, tier_kind::disk));
  held.clear();
  for (size_t i = 0; i < 4; ++i)
    std::fill(client.piece(i).begin(), client.piece(i).end(), uint8_t{0});
  auto loaded = client->load(client.load_of(chain), patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 4U);
  ASSERT_GT(loaded->bytes_by_tier.size(), static_cast<size_t>(tier_kind::disk));
  EXPECT_EQ(loaded->bytes_by_tier[static_cast<size_t>(tier_kind::disk)], 4 * object_bytes);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(has_content(chain[i], client.piece(i)));
  // Promoted to host memory.
  EXPECT_EQ(client.lookup(chain).tiers, std::vector<tier_kind>(4, tier_kind::host));
  EXPECT_EQ(client.lookup(chain, false, on_disk).found_chunks, 4U); // still on disk
}

TEST(Tiers, LeaseOnChunksOfBothTiersBringsThemUpInPlace) {
  daemon_under_test daemon(with_disk);
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto chain = chain_of(1, 4);
  client.store(chain);
  occupy(client, 100, objects_in(32 * mebibyte));
  ASSERT_TRUE(client->load(client.load_of(chain, {1, 1}), patiently()));
  auto found = client.lookup(chain, true);
  auto places = client->read_lease(found.held.id(), {}, patiently());
  ASSERT_TRUE(places) << places.error().text;
  ASSERT_EQ(places->objects.size(), 4U);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(has_content(chain[i], places->objects[i]));
}

TEST(Tiers, SeenTwiceWritesWhatIsUsedAgain) {
  daemon_under_test daemon({.disk_bytes = 128 * mebibyte, .disk = "admission = \"seen_twice\"\n"});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto once = chain_of(1, 4);
  auto twice = chain_of(2, 4);
  client.store(once);
  client.store(twice);
  EXPECT_EQ(client.load_and_check(twice), 4U);
  occupy(client, 100, objects_in(32 * mebibyte));
  EXPECT_EQ(client.lookup(once).found_chunks, 0U);
  EXPECT_EQ(client.lookup(twice).found_chunks, 4U);
  EXPECT_EQ(client.load_and_check(twice), 4U);
}

TEST(Tiers, DiskSmallerThanTheDataEvicts) {
  daemon_under_test daemon({.disk_bytes = 16 * mebibyte});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  for (uint64_t i = 0; i < 60; ++i)
    client.store(chain_of(i, 1));
  occupy(client, 100, objects_in(32 * mebibyte)); // everything stored before has passed through the disk
  auto disk = client.tier("disk");
  EXPECT_EQ(disk.state, "ready");
  EXPECT_GE(disk.evictions, 40U);
  EXPECT_LE(disk.used_bytes, disk.capacity_bytes);
  EXPECT_LE(disk.capacity_bytes, 16 * mebibyte);
  uint32_t left = 0;
  for (uint64_t i = 0; i < 60; ++i)
    left += client.load_and_check(chain_of(i, 1)); // everything served is right
  EXPECT_LE(left, 15U);
}

/// A file system of 8 MiB if the test may mount one; otherwise the store is larger than any disk.
class small_file_system {
 public:
  small_file_system() { mounted_ = ::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=8m") == 0; }
  ~small_file_system() {
    if (mounted_)
      ::umount(folder_.path().c_str());
  }
  const std::string& path() const { return folder_.path(); }
  uint64_t too_large() const { return mounted_ ? 64 * mebibyte : 1ULL << 50; }

 private:
  temporary_folder folder_;
  bool mounted_ = false;
};

TEST(Tiers, FullDiskLeavesADaemonThatServesFromHostMemoryAndSaysWhy) {
  small_file_system full;
  daemon_under_test daemon({.disk_bytes = full.too_large(), .state_dir = full.path()});
  ASSERT_TRUE(daemon.await_log("the disk tier of group default is off"));
  tester client(daemon.socket());
  auto disk = client.tier("disk");
  EXPECT_EQ(disk.state, "degraded");
  EXPECT_NE(disk.reason.find("free on its file system"), std::string::npos) << disk.reason;
  auto chain = chain_of(1, 4);
  EXPECT_EQ(client.store(chain), 4U);
  EXPECT_EQ(client.load_and_check(chain), 4U);
  occupy(client, 100, objects_in(32 * mebibyte));
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  EXPECT_EQ(daemon.terminate(), 0);
}

} // namespace tiers_test
} // namespace terrace::e2e
