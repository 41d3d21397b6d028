// What comes back after SIGKILL: everything that had reached the journal, whatever was being stored and
// cleared.
#include "workload.hpp"

#include "tests/support/child_process.hpp"
#include "tests/support/seed.hpp"

#include <cstdlib>
#include <random>

namespace terrace::e2e {
namespace survival_test {

using test::child_process;
using test::child_voice;

constexpr size_t kept_chunks = 24;

client::space_spec space_named(const std::string& revision) {
  auto spec = test_space();
  spec.revision = revision;
  return spec;
}

void await_on_disk(tester& client, uint64_t objects) {
  auto until = patiently();
  while (client.tier("disk").objects != objects && std::chrono::steady_clock::now() < *until)
    ;
  ASSERT_EQ(client.tier("disk").objects, objects);
}

/// When it returns, the journal has written everything that was on disk before. A clear waits for the
/// journal's operation in progress, and the next operation contains everything that was pending: the second
/// clear waits for that one.
void pass_the_journals_bound(daemon_under_test& daemon, tester& client, uint64_t on_disk) {
  tester other(daemon.socket(), "bound", object_bytes, space_named("bound"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(other.store(chain_of(7, 1)), 1U);
    await_on_disk(client, on_disk + 1);
    ASSERT_TRUE(other->admin().clear(&other.space(), patiently()));
  }
}

/// Stores in a space of its own and clears it, until it is killed.
int store_and_clear(const std::string& socket, const child_voice& voice, uint64_t seed) {
  tester client(socket, "load", 8 * object_bytes, space_named("load"));
  for (uint64_t i = 0; client->alive() && i < 1000; ++i) {
    auto chain = chain_of(seed + i % 5, 4);
    (void) client->store(client.store_of(chain), patiently());
    if (i % 3 == 2)
      (void) client->admin().clear(&client.space(), patiently());
    voice.say('s');
  }
  return 0;
}

void many_deaths(uint64_t cycles) {
  uint64_t seed = terrace::test::test_seed();
  SCOPED_TRACE(terrace::test::seed_text(seed));
  std::mt19937_64 random(seed);
  daemon_under_test daemon({.disk_bytes = 96 * mebibyte});
  std::vector<digest> kept;
  for (uint64_t cycle = 0; cycle < cycles && !::testing::Test::HasFailure(); ++cycle) {
    SCOPED_TRACE("life " + std::to_string(cycle));
    ASSERT_TRUE(daemon.await_log("joined"));
    {
      tester client(daemon.socket());
      if (!kept.empty()) {
        EXPECT_EQ(client.lookup(kept).found_chunks, kept.size()) << "it was in the journal before the kill";
        EXPECT_EQ(client.load_and_check(kept), kept.size());
      }
      ASSERT_TRUE(client->admin().clear(nullptr, patiently()));
      await_on_disk(client, 0);
      kept = chain_of(1000 + cycle, kept_chunks);
      EXPECT_EQ(client.store(kept), kept_chunks);
      await_on_disk(client, kept_chunks);
      pass_the_journals_bound(daemon, client, kept_chunks);
    }
    child_process load(
        [&](const child_voice& voice) { return store_and_clear(daemon.socket(), voice, cycle * 100); });
    for (uint64_t words = random() % 12; words > 0; --words)
      load.await_word();
    daemon.kill();
    load.kill();
    daemon.start();
  }
}

TEST(Survival, WhatTheJournalHadComesBackWholeAfterAKillAmongStoresAndClears) { many_deaths(6); }

TEST(SurvivalSlow, TwoHundredKills) {
  if (std::getenv("TERRACE_SLOW_TESTS") == nullptr)
    GTEST_SKIP() << "takes minutes; set TERRACE_SLOW_TESTS to run it";
  many_deaths(200);
}

} // namespace survival_test
} // namespace terrace::e2e
