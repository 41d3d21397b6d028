// The disk tier across the end of its daemon, in order and by SIGKILL.
#include "workload.hpp"

#include "tests/support/child_process.hpp"
#include "tests/support/seed.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

namespace terrace::e2e {
namespace {

using test::child_process;
using test::child_voice;

const daemon_options small_disk{.disk_bytes = 96 * mebibyte};
constexpr uint64_t physical_bytes = object_bytes + 4096; // size on disk, see docs/disk-format.md

/// Checks that the daemon's figures about its disk agree: nothing is lost, and nothing is counted twice.
void usage_is_exact(tester& client) {
  auto disk = client.tier("disk");
  EXPECT_EQ(disk.used_bytes, disk.objects * physical_bytes);
  EXPECT_EQ(disk.used_bytes + disk.free_bytes, disk.capacity_bytes);
}

TEST(Restart, WhatWasStoredIsServedByTheNextDaemonBitForBit) {
  daemon_under_test daemon(small_disk);
  ASSERT_TRUE(daemon.await_log("joined"));
  auto chain = chain_of(1, 12);
  tester(daemon.socket()).store(chain);
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("12 objects found"));
  tester client(daemon.socket());
  EXPECT_EQ(client.lookup(chain).tiers, std::vector<tier_kind>(12, tier_kind::disk));
  usage_is_exact(client);
  EXPECT_EQ(client.load_and_check(chain), 12U);
  auto longer = chain_of(1, 14); // the longer chain continues the same one
  EXPECT_EQ(client.store(longer), 2U);
  EXPECT_EQ(client.load_and_check(longer), 14U);
}

TEST(Restart, AnotherSpaceFindsNothingOfIt) {
  daemon_under_test daemon(small_disk);
  ASSERT_TRUE(daemon.await_log("joined"));
  auto chain = chain_of(1, 2);
  tester(daemon.socket()).store(chain);
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("2 objects found"));
  auto other = test_space();
  other.revision = "another";
  tester client(daemon.socket(), "tester", 8 * object_bytes, other);
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  EXPECT_EQ(tester(daemon.socket()).lookup(chain).found_chunks, 2U);
}

TEST(Restart, ASmallerDiskKeepsWhatFitsAndSaysHowMuchItForgets) {
  temporary_folder state;
  constexpr uint64_t chains = 72 * mebibyte / (8 * object_bytes);
  {
    daemon_under_test daemon({.disk_bytes = 96 * mebibyte, .state_dir = state.path()});
    ASSERT_TRUE(daemon.await_log("joined"));
    tester client(daemon.socket());
    for (uint64_t i = 0; i < chains; ++i)
      client.store(chain_of(i, 8));
    ASSERT_EQ(daemon.terminate(), 0);
  }
  daemon_under_test smaller({.disk_bytes = 48 * mebibyte, .state_dir = state.path()});
  ASSERT_TRUE(smaller.await_log(
      " objects were beyond its new end and are lost, because disk.bytes is smaller than before"));
  tester client(smaller.socket());
  EXPECT_GT(client.tier("disk").objects, 0U);
  EXPECT_LT(client.tier("disk").objects, chains * 8);
}

TEST(Restart, AStoreOfAnotherMachineIsRefusedAndLeftAsItIs) {
  temporary_folder state;
  daemon_under_test daemon({.disk_bytes = 96 * mebibyte, .state_dir = state.path()});
  ASSERT_TRUE(daemon.await_log("joined"));
  ASSERT_EQ(daemon.terminate(), 0);
  std::string path = state / "terrace.extents";
  {
    unique_fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::pwrite(fd.get(), "somebody else's", 15, 0), 15);
    ASSERT_EQ(::pwrite(fd.get(), "somebody else's", 15, 4096), 15);
  }
  daemon.start();
  ASSERT_TRUE(daemon.await_log("is off"));
  tester client(daemon.socket());
  EXPECT_EQ(client.tier("disk").state, "degraded");
  EXPECT_NE(client.tier("disk").reason.find("on_mismatch"), std::string::npos) << client.tier("disk").reason;
  EXPECT_EQ(client.store(chain_of(1, 2)), 2U);
  ASSERT_EQ(daemon.terminate(), 0);
  EXPECT_EQ(read_file(path).substr(0, 15), "somebody else's");

  daemon.configure(
      {.disk_bytes = 96 * mebibyte, .disk = "on_mismatch = \"wipe\"\n", .state_dir = state.path()});
  daemon.start();
  ASSERT_TRUE(daemon.await_log("joined"));
  EXPECT_EQ(tester(daemon.socket()).tier("disk").state, "ready");
}

TEST(Restart, ADaemonWaitsForTheFileThatAnotherStillHasOpen) {
  temporary_folder state;
  daemon_options options{.disk_bytes = 96 * mebibyte, .state_dir = state.path()};
  daemon_under_test first(options);
  ASSERT_TRUE(first.await_log("joined"));
  auto chain = chain_of(1, 3);
  tester(first.socket()).store(chain);
  daemon_under_test second(options);
  ASSERT_TRUE(second.await_log("waits"));
  tester client(second.socket());
  EXPECT_EQ(client.tier("disk").state, "starting");
  EXPECT_NE(client.tier("disk").reason.find("another process"), std::string::npos);
  EXPECT_EQ(client.store(chain_of(2, 2)), 2U); // host memory serves
  EXPECT_EQ(first.terminate(), 0);
  ASSERT_TRUE(second.await_log("3 objects found"));
  EXPECT_EQ(client.load_and_check(chain), 3U);
}

TEST(Restart, ADaemonThatWaitsForAFileEndsAllTheSame) {
  temporary_folder state;
  daemon_options options{.disk_bytes = 96 * mebibyte, .state_dir = state.path()};
  daemon_under_test first(options);
  ASSERT_TRUE(first.await_log("joined"));
  daemon_under_test second(options);
  ASSERT_TRUE(second.await_log("waits"));
  EXPECT_EQ(second.terminate(), 0);
}

TEST(Restart, WhatWasClearedIsGoneForGood) {
  daemon_under_test daemon(small_disk);
  ASSERT_TRUE(daemon.await_log("joined"));
  auto chain = chain_of(1, 8);
  auto others = chain_of(2, 4);
  auto other = test_space();
  other.revision = "another";
  {
    tester client(daemon.socket());
    client.store(chain);
    tester second(daemon.socket(), "second", 8 * object_bytes, other);
    second.store(others);
    auto lease = client.lookup(chain, true);
    auto cleared = client->admin().clear(&client.space(), patiently());
    ASSERT_TRUE(cleared) << cleared.error().text;
    EXPECT_GE(cleared->objects, 8U);
    EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
    EXPECT_EQ(second.lookup(others).found_chunks, 4U);
  }
  daemon.kill();
  daemon.start();
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  usage_is_exact(client);
  client::space wrong{77, {}};
  EXPECT_EQ(client->admin().clear(&wrong, patiently()).error().code, errc::bad_request) << "it is not open";
  auto all = client->admin().clear(nullptr, patiently());
  ASSERT_TRUE(all) << all.error().text;
  EXPECT_EQ(client.tier("disk").used_bytes, 0U);
  EXPECT_EQ(client.tier("host").used_bytes, 0U);
  EXPECT_EQ(client.store(chain), 8U);
  EXPECT_EQ(client.load_and_check(chain), 8U);
}

/// Chains by seed, and which of them were cleared: what survives the killed daemon.
struct remembered {
  std::map<uint64_t, size_t> chains; ///< length by seed
  std::set<uint64_t> cleared;
};

/// One life of a daemon that is killed while clients store and load.
void killed_under_load(daemon_under_test& daemon, std::mt19937_64& random, remembered& known,
                       uint64_t cycle) {
  ASSERT_TRUE(daemon.await_log("joined"));
  {
    tester client(daemon.socket());
    usage_is_exact(client);
    for (const auto& [seed, length] : known.chains) {
      if (known.cleared.contains(seed)) {
        EXPECT_EQ(client.lookup(chain_of(seed, 1)).found_chunks, 0U) << "cleared, and back: " << seed;
      }
      client.load_and_check(chain_of(seed, length)); // everything delivered must be right
    }
    usage_is_exact(client);
    if (cycle % 3 == 2) {
      auto cleared = client->admin().clear(nullptr, patiently());
      ASSERT_TRUE(cleared) << cleared.error().text;
      for (const auto& [seed, length] : known.chains)
        known.cleared.insert(seed);
    }
  }
  std::vector<uint64_t> seeds;
  for (uint64_t i = 0; i < 48; ++i)
    seeds.push_back(cycle * 1000 + i);
  size_t length = 1 + random() % 6;
  for (uint64_t seed : seeds)
    known.chains[seed] = length;
  child_process load([&](const child_voice& voice) {
    tester client(daemon.socket(), "load");
    for (uint64_t seed : seeds) {
      auto chain = chain_of(seed, length);
      for (size_t i = 0; i < length; ++i)
        fill_content(chain[i], client.piece(i));
      auto stored = client->store(client.store_of(chain), patiently());
      if (seed % 3 == 0)
        (void) client->load(client.load_of(chain_of(seeds[seed * 7 % 48], length)), patiently());
      voice.say(stored ? 's' : 'e');
      if (!client->alive())
        return 0;
    }
    voice.stay();
    return 0;
  });
  for (uint64_t words = random() % 48; words > 0; --words)
    load.await_word();
  daemon.kill();
  load.kill();
}

void many_deaths(uint64_t cycles) {
  uint64_t seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  std::mt19937_64 random(seed);
  daemon_under_test daemon(small_disk);
  remembered known;
  for (uint64_t cycle = 0; cycle < cycles && !::testing::Test::HasFatalFailure(); ++cycle) {
    SCOPED_TRACE("life " + std::to_string(cycle));
    killed_under_load(daemon, random, known, cycle);
    // Older chains have left the disk long ago.
    while (known.chains.size() > 200) {
      known.cleared.erase(known.chains.begin()->first);
      known.chains.erase(known.chains.begin());
    }
    daemon.start();
  }
  ASSERT_TRUE(daemon.await_log("joined"));
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST(Restart, TenKilledDaemonsServeNoWrongByteAndForgetNothingCleared) { many_deaths(10); }

TEST(RestartSlow, TwoHundredKilledDaemonsServeNoWrongByteAndForgetNothingCleared) {
  if (std::getenv("TERRACE_SLOW_TESTS") == nullptr)
    GTEST_SKIP() << "takes minutes; set TERRACE_SLOW_TESTS to run it";
  many_deaths(200);
}

} // namespace
} // namespace terrace::e2e
