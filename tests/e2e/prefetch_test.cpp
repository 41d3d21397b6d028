// Prefetches bring chunks of lower tiers into host memory before anybody loads them.
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace terrace::e2e {
namespace {

using client::prefetch_end;
using client::stop_rule;

constexpr size_t disk_tier = static_cast<size_t>(tier_kind::disk);
constexpr size_t host_tier = static_cast<size_t>(tier_kind::host);

client::prefetch_request prefetch_of(tester& by, const std::vector<digest>& chain,
                                     stop_rule rule = stop_rule::wait) {
  return {.in = by.space(), .what = client::prefix::of_digests(chain), .rule = rule};
}

client::prefetch_result prefetch(tester& by, const client::prefetch_request& request) {
  auto done = by->prefetch(request, patiently());
  EXPECT_TRUE(done) << done.error().text;
  return done.value_or(client::prefetch_result{});
}

/// Eight chunks, only on disk.
class Prefetch : public testing::Test {
 protected:
  explicit Prefetch(const daemon_options& options = {}) : daemon_(with_disk(options)) {
    EXPECT_TRUE(daemon_.await_log("joined"));
    EXPECT_EQ(tester(daemon_.socket()).store(chain), 8U);
    forget_memory();
  }
  static daemon_options with_disk(daemon_options options) {
    options.disk_bytes = 96 * mebibyte;
    return options;
  }
  void forget_memory() {
    EXPECT_EQ(daemon_.terminate(), 0);
    daemon_.start();
    EXPECT_TRUE(daemon_.await_log("8 objects found"));
  }

  /// Checks that nothing is held, and that lookups find this many chunks in host memory.
  void expect_in_host(tester& by, uint32_t chunks) {
    EXPECT_EQ(leased_objects(by, 0), 0U);
    EXPECT_EQ(by.lookup(chain, false, on_host).found_chunks, chunks);
  }

  daemon_under_test daemon_;
  std::vector<digest> chain = chain_of(1, 8);
};

TEST_F(Prefetch, BringsWhatIsOnDiskIntoHostMemoryAndALoadReadsNoDisk) {
  tester client(daemon_.socket());
  auto longer = chain_of(1, 10);
  auto done = prefetch(client, prefetch_of(client, longer));
  EXPECT_EQ(done.requested_chunks, 10U);
  EXPECT_EQ(done.found_chunks, 8U);
  EXPECT_EQ(done.expected_chunks, 8U);
  EXPECT_EQ(done.delivered_chunks, 8U);
  EXPECT_EQ(done.delivered_tokens(), 8 * space_chunk_tokens);
  EXPECT_EQ(done.end, prefetch_end::complete);
  EXPECT_FALSE(done.missing);
  ASSERT_EQ(done.tiers.size(), 6U);
  EXPECT_EQ(done.tiers[disk_tier].delivered, 8U);
  EXPECT_EQ(done.tiers[host_tier].found, 0U);
  EXPECT_EQ(client.lookup(chain).tiers, std::vector<tier_kind>(8, tier_kind::host));
  expect_in_host(client, 8);
  EXPECT_EQ(client.tier("disk").bytes_read, 8 * object_bytes);
  EXPECT_EQ(client.load_and_check(chain), 8U);
  EXPECT_EQ(client.tier("disk").bytes_read, 8 * object_bytes);
  auto nobodys = prefetch(client, prefetch_of(client, chain_of(2, 3)));
  EXPECT_EQ(nobodys.requested_chunks, 3U);
  EXPECT_EQ(nobodys.found_chunks, 0U);
  EXPECT_EQ(nobodys.end, prefetch_end::complete);
  auto again = prefetch(client, prefetch_of(client, chain));
  EXPECT_EQ(again.delivered_chunks, 8U);
  EXPECT_EQ(again.tiers[host_tier].delivered, 8U);
  EXPECT_EQ(client.tier("disk").bytes_read, 8 * object_bytes);
}

TEST_F(Prefetch, OfALeaseAndOfANamedLookupOfAnotherConnection) {
  tester scheduler(daemon_.socket()), worker(daemon_.socket());
  auto part = std::vector<digest>(chain.begin(), chain.begin() + 3);
  auto found = scheduler.lookup(part, true);
  auto done = prefetch(worker, {.lease = found.held.id(), .rule = stop_rule::wait});
  EXPECT_EQ(done.delivered_chunks, 3U);
  EXPECT_EQ(worker.lookup(chain, false, on_host).found_chunks, 3U);
  lookup_id name;
  name.bytes.fill(7);
  auto waiting = worker->async().prefetch({.lookup = name, .rule = stop_rule::wait}, patiently());
  ASSERT_TRUE(waiting);
  auto request = scheduler.lookup_of(chain, true);
  request.id = name;
  auto named = scheduler->lookup(request, patiently());
  ASSERT_TRUE(named);
  auto all = waiting->wait(patiently());
  ASSERT_TRUE(all) << all.error().text;
  EXPECT_EQ(all->delivered_chunks, 8U);
  EXPECT_EQ(all->tiers[disk_tier].delivered, 5U);
  named->held = {};
  found.held = {};
  expect_in_host(worker, 8);
  auto gone = worker->prefetch({.lookup = name}, patiently());
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, errc::gone) << gone.error().text;
}

TEST_F(Prefetch, ADamagedChunkInTheMiddleEndsItAndWhatCameBehindItStays) {
  std::vector<uint8_t> content(object_bytes);
  fill_content(chain[3], content);
  unique_fd file(::open((daemon_.state() + "/terrace.extents").c_str(), O_RDWR | O_CLOEXEC));
  std::vector<uint8_t> block(4096);
  off_t at = 0;
  while (::pread(file.get(), block.data(), block.size(), at) == 4096 &&
         std::memcmp(block.data(), content.data(), block.size()) != 0)
    at += 4096;
  ASSERT_EQ(::pwrite(file.get(), "damage", 6, at + 100), 6);
  tester client(daemon_.socket());
  auto done = prefetch(client, prefetch_of(client, chain));
  EXPECT_EQ(done.expected_chunks, 8U);
  EXPECT_EQ(done.delivered_chunks, 3U);
  EXPECT_EQ(done.end, prefetch_end::lost);
  ASSERT_TRUE(done.missing);
  EXPECT_EQ(done.missing->chunk, 3U);
  EXPECT_TRUE(done.missing->damaged);
  expect_in_host(client, 3);
  // Windows that had begun are completed.
  EXPECT_TRUE(eventually([&] { return client.lookup({chain[7]}, false, on_host).found_chunks == 1; }));
  EXPECT_EQ(leased_objects(client, 0), 0U);
}

TEST_F(Prefetch, CancelledItAnswersWithWhatHasArrivedAndHoldsNothing) {
  tester client(daemon_.socket());
  auto prefetch = client->async().prefetch(prefetch_of(client, chain), patiently());
  ASSERT_TRUE(prefetch);
  client.lookup({chain[0]});
  ASSERT_TRUE(prefetch->cancel(patiently()));
  auto done = prefetch->wait(patiently());
  if (done) {
    EXPECT_EQ(done->end, done->delivered_chunks == 8 ? prefetch_end::complete : prefetch_end::cancelled);
    EXPECT_GE(client.lookup(chain, false, on_host).found_chunks, done->delivered_chunks);
  } else {
    EXPECT_EQ(done.error().code, errc::cancelled) << "before it had found anything: " << done.error().text;
  }
  EXPECT_EQ(leased_objects(client, 0), 0U);
  EXPECT_EQ(client.load_and_check(chain), 8U);
}

TEST_F(Prefetch, TheEndOfItsClientLeavesNothingHeld) {
  tester other(daemon_.socket());
  for (int i = 0; i < 4; ++i) {
    tester client(daemon_.socket());
    ASSERT_TRUE(client->async().prefetch(prefetch_of(client, chain), patiently()));
  }
  EXPECT_EQ(leased_objects(other, 0), 0U);
  EXPECT_EQ(other.load_and_check(chain), 8U);
}

/// Host memory has room for seven objects.
class CrowdedPrefetch : public Prefetch {
 protected:
  CrowdedPrefetch()
      : Prefetch({.host_bytes = 8 * mebibyte, .metrics = "127.0.0.1:" + std::to_string(port())}) {}
  static uint16_t port() {
    static uint16_t chosen = test::free_port();
    return chosen;
  }
};

TEST_F(CrowdedPrefetch, IsCutToTheRoomSoThatItDoesNotEvictItsOwnBeginning) {
  tester client(daemon_.socket());
  auto done = prefetch(client, prefetch_of(client, chain));
  EXPECT_EQ(done.found_chunks, 8U);
  EXPECT_EQ(done.expected_chunks, 3U) << "half of host memory";
  EXPECT_EQ(done.delivered_chunks, 3U);
  EXPECT_EQ(done.end, prefetch_end::no_room);
  expect_in_host(client, 3);
}

TEST_F(CrowdedPrefetch, WaitsForMemoryOnlyIfItsRuleSaysSo) {
  tester client(daemon_.socket());
  auto leases = occupy(client, 500, 4);
  slow_client slow(daemon_.socket(), "slow"); // its stores hold the rest of host memory for a second
  auto stores = slow.store(100, 3);
  ASSERT_TRUE(eventually([&] { return client.tier("host").used_bytes >= 7 * object_bytes; }));
  auto now = prefetch(client, prefetch_of(client, chain, stop_rule::best_effort));
  EXPECT_EQ(now.end, prefetch_end::no_room);
  EXPECT_EQ(now.delivered_chunks, 0U);
  EXPECT_NE(
      test::scrape(port()).find("terrace_tier_prefetch_refused_total{group=\"default\",tier=\"host\"} "),
      std::string::npos);
  auto timed = prefetch_of(client, chain, stop_rule::until_deadline);
  timed.time = std::chrono::milliseconds(50);
  auto late = prefetch(client, timed);
  EXPECT_EQ(late.end, prefetch_end::deadline_passed);
  EXPECT_EQ(late.delivered_chunks, 0U);
  EXPECT_EQ(late.expected_chunks, 1U);
  timed.rule = stop_rule::wait;
  auto failed = client->prefetch(timed, patiently());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, errc::deadline) << failed.error().text;
  auto whole = prefetch(client, prefetch_of(client, chain)); // waits until a store has ended
  EXPECT_EQ(whole.delivered_chunks, whole.expected_chunks);
}

} // namespace
} // namespace terrace::e2e
