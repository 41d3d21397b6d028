// When objects of host memory reach the disk: when they are evicted, at their second use, or never.
#include "base/printable.hpp"
#include "workload.hpp"

#include "tests/support/scrape.hpp"

#include <sstream>

namespace terrace::e2e {
namespace demotion_test {

constexpr uint64_t host_memory = 16 * mebibyte;
constexpr uint64_t physical_bytes = object_bytes + 4096; // size on disk, see docs/disk-format.md

class Demotion : public ::testing::Test {
 protected:
  void start(const std::string& mode, uint64_t disk_bytes = 192 * mebibyte, const std::string& host = {}) {
    daemon_ = std::make_unique<daemon_under_test>(with(mode, disk_bytes, host_memory, host));
    EXPECT_TRUE(daemon_->await_log("joined"));
    client_ = std::make_unique<tester>(daemon_->socket());
  }
  void start_again(const std::string& log) {
    client_.reset();
    EXPECT_EQ(daemon_->terminate(), 0);
    daemon_->start();
    EXPECT_TRUE(daemon_->await_log(log));
    client_ = std::make_unique<tester>(daemon_->socket());
  }
  daemon_options with(const std::string& mode, uint64_t disk_bytes, uint64_t host_bytes,
                      const std::string& host) const {
    return {.host_bytes = host_bytes,
            .host = "policy = \"lru\"\n" + host,
            .disk_bytes = disk_bytes,
            .disk = "admission = \"always\"\ndemotion = \"" + mode + "\"\n",
            .metrics = "127.0.0.1:" + std::to_string(port_)};
  }

  /// Stores chains of 8 objects, all of which are new.
  void store_chains(uint64_t first, uint64_t count) {
    for (uint64_t seed = first; seed < first + count; ++seed)
      EXPECT_EQ(client_->store(chain_of(seed, 8)), 8U) << "chain " << seed;
  }
  void expect_chains(uint64_t first, uint64_t count) {
    for (uint64_t seed = first; seed < first + count; ++seed)
      EXPECT_EQ(client_->load_and_check(chain_of(seed, 8)), 8U) << "chain " << seed;
  }
  uint64_t on_disk_now() { return client_->tier("disk").objects; }
  bool disk_gets(uint64_t objects) {
    return eventually([&] { return on_disk_now() == objects; });
  }

  /// Returns the sum of the samples of a metric whose labels contain the text.
  double metric(const std::string& name, const std::string& label = {}) const {
    double sum = 0;
    std::istringstream lines(test::scrape(port_));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(name + "{") && line.find(label) != std::string::npos)
        sum += std::stod(line.substr(line.rfind(' ')));
    return sum;
  }
  void expect_nothing_dropped() const { EXPECT_EQ(metric("terrace_tier_dropped_total"), 0); }

  uint16_t port_ = test::free_port();
  std::unique_ptr<daemon_under_test> daemon_;
  std::unique_ptr<tester> client_;
};

TEST_F(Demotion, WriteBackWritesNothingUntilMemoryIsShort) {
  start("write_back");
  store_chains(1, 1);
  expect_chains(1, 1);
  EXPECT_EQ(on_disk_now(), 0U);
  EXPECT_EQ(client_->tier("disk").bytes_written, 0U);
  store_chains(2, 3);
  EXPECT_GT(on_disk_now(), 0U);
  auto evicted = client_->lookup(chain_of(1, 8), false, on_disk);
  EXPECT_EQ(evicted.found_chunks, 8U) << "it was used least recently";
  expect_chains(1, 4);
  expect_nothing_dropped();
  EXPECT_GT(metric("terrace_tier_demoted_total", "tier=\"host\""), 0);
  EXPECT_EQ(metric("terrace_tier_demoted_bytes_total"), metric("terrace_tier_written_bytes_total", "disk"));
  EXPECT_EQ(metric("terrace_tier_demotions_failed_total"), 0);
  EXPECT_GT(metric("terrace_tier_demotion_wait_seconds_count"), 0);
}

TEST_F(Demotion, ACleanEndWritesWhatOnlyHostMemoryHas) {
  start("write_back");
  store_chains(1, 3);
  start_again("24 objects found");
  expect_chains(1, 3);
}

TEST_F(Demotion, RoomAheadOfDemandIsMadeInTheSameWay) {
  start("write_back", 192 * mebibyte, "low_watermark_percent = 30\n");
  store_chains(1, 4);
  ASSERT_TRUE(eventually([&] { return client_->tier("host").free_bytes >= host_memory * 3 / 10; }));
  EXPECT_GT(metric("terrace_tier_evictions_total", "reason=\"ahead\""), 0);
  expect_chains(1, 4);
}

TEST_F(Demotion, OffWritesNothing) {
  start("off");
  store_chains(1, 4);
  expect_chains(4, 1);
  EXPECT_LT(client_->lookup(chain_of(1, 8)).found_chunks, 8U);
  EXPECT_EQ(on_disk_now(), 0U);
  start_again(" 0 objects found");
  EXPECT_EQ(client_->tier("disk").bytes_written, 0U);
}

TEST_F(Demotion, SelectiveWritesAtTheSecondUse) {
  // Half of host memory has credit at a time; objects without credit reach the disk at a later use.
  daemon_ = std::make_unique<daemon_under_test>(with("selective", 192 * mebibyte, 2 * host_memory, {}));
  ASSERT_TRUE(daemon_->await_log("joined"));
  client_ = std::make_unique<tester>(daemon_->socket());
  auto loaded = chain_of(1, 4), leased = chain_of(2, 4), unused = chain_of(3, 4);
  for (const auto& each : {loaded, leased, unused})
    EXPECT_EQ(client_->store(each), 4U);
  EXPECT_EQ(client_->lookup(loaded).found_chunks, 4U); // this lookup does not count as a use
  EXPECT_EQ(on_disk_now(), 0U);
  EXPECT_EQ(client_->load_and_check(loaded), 4U);
  EXPECT_TRUE(disk_gets(4));
  { auto lease = client_->lookup(leased, true); }
  EXPECT_TRUE(disk_gets(8));
  EXPECT_EQ(client_->lookup(leased, false, on_disk).found_chunks, 4U);
  EXPECT_EQ(client_->lookup(unused, false, on_disk).found_chunks, 0U);
  EXPECT_EQ(client_->load_and_check(loaded), 4U);
  EXPECT_EQ(client_->store(unused), 0U); // the store finds it present, which counts as a use
  EXPECT_TRUE(disk_gets(12));
  EXPECT_EQ(client_->tier("disk").bytes_written, 12 * object_bytes) << "each once";
  start_again("12 objects found");
  EXPECT_EQ(client_->load_and_check(loaded), 4U);
}

TEST_F(Demotion, AFullDiskMakesRoomForWhatIsEvicted) {
  start("write_back", 24 * mebibyte);
  store_chains(1, 8);
  expect_nothing_dropped();
  EXPECT_GT(metric("terrace_tier_evictions_total", "tier=\"disk\""), 0);
  expect_chains(8, 1);
}

TEST_F(Demotion, WhatADiskThatIsFullOfLeasesCannotTakeIsLost) {
  start("write_back", 9 * mebibyte); // room for eight objects
  store_chains(1, 1);
  auto first = chain_of(1, 8);
  for (uint64_t seed = 100; client_->lookup(first, false, on_disk).found_chunks < 8; ++seed)
    ASSERT_EQ(client_->store(chain_of(seed, 1)), 1U);
  ASSERT_EQ(on_disk_now(), 8U);
  auto lease = client_->lookup(first, true, on_disk);
  ASSERT_EQ(lease.found_chunks, 8U);
  store_chains(4, 4);
  EXPECT_GT(metric("terrace_tier_demotions_failed_total", "reason=\"no_room\""), 0);
  expect_nothing_dropped();
  expect_chains(7, 1);
  EXPECT_EQ(client_->load_and_check(first), 8U);
}

TEST_F(Demotion, AnExhaustedWriteBudgetDoesNotStopStores) {
  daemon_ = std::make_unique<daemon_under_test>(
      daemon_options{.host_bytes = host_memory,
                     .disk_bytes = 192 * mebibyte,
                     .disk = "admission = \"always\"\ndemotion = \"write_back\"\n"
                             "write_bytes_per_day = \"96MiB\"\n", // 4 MiB at a time
                     .metrics = "127.0.0.1:" + std::to_string(port_)});
  ASSERT_TRUE(daemon_->await_log("joined"));
  client_ = std::make_unique<tester>(daemon_->socket());
  store_chains(1, 5);
  EXPECT_GT(metric("terrace_tier_demotions_failed_total", "reason=\"endurance\""), 0);
  EXPECT_LE(on_disk_now(), 4U);
  expect_nothing_dropped();
}

TEST_F(Demotion, MemoryThatIsGivenBackIsWrittenFirst) {
  constexpr uint64_t segment_bytes = 8 * mebibyte;
  const std::string segments = "segment_bytes = \"8MiB\"\n";
  daemon_ =
      std::make_unique<daemon_under_test>(with("write_back", 192 * mebibyte, 4 * segment_bytes, segments));
  ASSERT_TRUE(daemon_->await_log("joined"));
  client_ = std::make_unique<tester>(daemon_->socket());
  store_chains(1, 3);
  EXPECT_EQ(on_disk_now(), 0U);
  auto lease = client_->lookup(chain_of(3, 8), true);
  daemon_->configure(with("write_back", 192 * mebibyte, segment_bytes, segments));
  daemon_->signal(SIGHUP);
  EXPECT_TRUE(daemon_->await_log("has " + readable_bytes(segment_bytes) + " of host memory"));
  lease.held.release();
  EXPECT_TRUE(daemon_->await_log("segment 1 was removed"));
  EXPECT_TRUE(eventually([&] { return client_->tier("host").leaving_bytes == 0; }));
  expect_chains(1, 3);
  expect_nothing_dropped();
}

TEST_F(Demotion, ADaemonThatIsKilledLosesOnlyWhatWasInMemory) {
  start("write_back");
  store_chains(1, 4);
  ASSERT_EQ(client_->lookup(chain_of(1, 8), false, on_disk).found_chunks, 8U);
  client_.reset();
  daemon_->kill();
  daemon_->start();
  ASSERT_TRUE(daemon_->await_log("joined"));
  client_ = std::make_unique<tester>(daemon_->socket());
  for (uint64_t seed = 1; seed <= 4; ++seed) { // the last writes may be missing, but nothing is wrong
    auto chain = chain_of(seed, 8);
    auto found = client_->lookup(chain).found_chunks;
    EXPECT_EQ(client_->load_and_check(chain), found);
  }
  EXPECT_EQ(client_->tier("disk").used_bytes, on_disk_now() * physical_bytes);
}

} // namespace demotion_test
} // namespace terrace::e2e
