// Policies of the running daemon: what shadows report about live traffic, and changing the real one.
#include "workload.hpp"

#include <set>

namespace terrace::e2e {
namespace {

ended_program policies(const daemon_under_test& daemon, std::vector<std::string> words) {
  words.insert(words.begin(), {program("TERRACE"), "policies"});
  words.insert(words.end(), {"--socket", daemon.socket()});
  return run(words);
}

/// Returns the chains 1 to 6, of one to three chunks, in an order in which some return sooner than others.
std::vector<std::vector<digest>> requests() {
  std::vector<std::vector<digest>> made;
  for (uint64_t i = 0; i < 60; ++i) {
    uint64_t which = 1 + (i * i + i / 7) % 6;
    made.push_back(chain_of(which, 1 + which % 3));
  }
  return made;
}

/// Serves like an engine without its own cache: uses what is found, stores what is missing. Returns the
/// chunks found.
uint64_t serve(tester& client, const std::vector<digest>& chain) {
  auto found = client.lookup(chain, true);
  size_t there = found.found_chunks;
  found = {}; // ends the lease
  if (there < chain.size()) {
    auto stored = client->store(
        client.store_of(chain, {static_cast<uint32_t>(there), static_cast<uint32_t>(chain.size() - there)}),
        patiently());
    EXPECT_TRUE(stored) << stored.error().text;
  }
  return there;
}

TEST(ShadowPolicies, TellWhatTheDaemonHitsAndWhatMoreMemoryWouldHaveHit) {
  daemon_under_test daemon({.host_bytes = 8 * mebibyte,
                            .more = "[shadow]\npolicies = [\"fifo\", \"lru\"]\n"
                                    "capacity_percents = [20, 100, 400]\n"});
  tester client(daemon.socket());
  uint64_t asked = 0, hits = 0, repeats = 0;
  std::set<digest> seen;
  for (const auto& chain : requests()) {
    hits += serve(client, chain);
    asked += chain.size();
    for (const digest& chunk : chain)
      repeats += !seen.insert(chunk).second;
  }
  auto told = client->admin().policies(patiently());
  ASSERT_TRUE(told) << told.error().text;
  EXPECT_EQ(told->skipped_requests, 0U);
  ASSERT_EQ(told->shadows.size(), 6U);
  for (const auto& shadow : told->shadows) {
    EXPECT_EQ(shadow.requests, 60U);
    EXPECT_EQ(shadow.asked, asked);
    EXPECT_LE(shadow.used_bytes, shadow.capacity_bytes);
  }
  const auto &tiny = told->shadows[3], &same = told->shadows[4], &roomy = told->shadows[5];
  EXPECT_EQ(same.policy, "lru");
  EXPECT_EQ(same.capacity_bytes, 8 * mebibyte);
  EXPECT_EQ(same.hits, hits); // the daemon's own policy and capacity
  EXPECT_EQ(roomy.hits, repeats);
  EXPECT_EQ(roomy.evictions, 0U);
  EXPECT_LT(tiny.hits, same.hits);
  EXPECT_LT(same.hits, roomy.hits);
  EXPECT_GT(tiny.evictions, 0U);
}

TEST(ShadowPolicies, AreATableForPeopleAndJsonForPrograms) {
  daemon_under_test daemon({.more = "[shadow]\npolicies = [\"arc\"]\ncapacity_percents = [50]\n"});
  tester client(daemon.socket());
  for (int i = 0; i < 2; ++i)
    serve(client, chain_of(1, 2));
  auto table = policies(daemon, {});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("16.0 MiB"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("50.0 %"), std::string::npos) << table.out;
  auto json = policies(daemon, {"--json"});
  EXPECT_NE(json.out.find("\"policy\":\"arc\",\"capacity_bytes\":16777216,\"hit_ratio\":0.5,"),
            std::string::npos)
      << json.out;
}

TEST(Policies, ChangeWhileTheDaemonRunsAndKeepTheResidents) {
  daemon_under_test daemon({.host_bytes = 4 * mebibyte});
  tester client(daemon.socket());
  for (uint64_t chain : {1, 2, 3})
    ASSERT_EQ(client.store(chain_of(chain, 1)), 1U);
  auto set = policies(daemon, {"set", "host", "fifo"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  EXPECT_NE(set.out.find("is now fifo; it was kmg"), std::string::npos) << set.out;
  EXPECT_EQ(client.tier("host").policy, "fifo");
  EXPECT_EQ(client.tier("host").objects, 3U);
  client.lookup(chain_of(1, 1), true); // a use, which fifo ignores
  ASSERT_EQ(client.store(chain_of(4, 1)), 1U);
  EXPECT_EQ(client.lookup(chain_of(1, 1)).found_chunks, 0U);
  EXPECT_EQ(client.lookup(chain_of(2, 1)).found_chunks, 1U);
}

TEST(Policies, RefuseWhatIsNoneAndSayWhatThereIs) {
  daemon_under_test daemon;
  auto unknown = policies(daemon, {"set", "host", "clock"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("s3fifo"), std::string::npos) << unknown.err;
  auto no_disk = policies(daemon, {"set", "disk", "lru"});
  EXPECT_EQ(no_disk.exit_code, 1);
  EXPECT_NE(no_disk.err.find("no disk tier"), std::string::npos) << no_disk.err;
  EXPECT_EQ(policies(daemon, {"set", "gpu", "lru"}).exit_code, 1);
  EXPECT_EQ(policies(daemon, {"set", "host"}).exit_code, 2);
  EXPECT_EQ(policies(daemon, {"drop", "host", "lru"}).exit_code, 2);
  tester client(daemon.socket());
  EXPECT_EQ(client.tier("host").policy, "kmg");
}

TEST(Policies, ChangeWithAReload) {
  daemon_under_test daemon({.disk_bytes = 64 * mebibyte});
  ASSERT_TRUE(daemon.await_log("joined"));
  daemon.configure(
      {.host = "policy = \"arc\"\n", .disk_bytes = 64 * mebibyte, .disk = "policy = \"lru2\"\n"});
  daemon.signal(SIGHUP);
  EXPECT_TRUE(daemon.await_logs({"the policy of host is arc now", "the policy of disk is lru2 now"}));
  tester client(daemon.socket());
  EXPECT_EQ(client.tier("host").policy, "arc");
  EXPECT_EQ(client.tier("disk").policy, "lru2");
  EXPECT_EQ(daemon.terminate(), 0);
}

} // namespace
} // namespace terrace::e2e
