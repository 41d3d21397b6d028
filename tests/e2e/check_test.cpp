// `terrace check` against a daemon that serves: what it counts, and that changes made meanwhile are no
// differences.
#include "command_line.hpp"
#include "tail_client.hpp"
#include "workload.hpp"

#include <nlohmann/json.hpp>

#include <sys/wait.h>

#include <atomic>
#include <map>
#include <thread>

namespace terrace::e2e {
namespace {

using json = nlohmann::json;

json check_of(const daemon_under_test& daemon) {
  auto done = terrace(daemon, {"check", "--json"});
  if (done.out.empty()) {
    ADD_FAILURE() << "terrace check printed nothing, exit code " << done.exit_code << ": " << done.err;
    return {{"idle", true}, {"count", 0}};
  }
  return json::parse(done.out);
}

/// Repeats the check until no request was in progress.
json idle_check(const daemon_under_test& daemon) {
  json found;
  EXPECT_TRUE(eventually([&] {
    found = check_of(daemon);
    return found["idle"].get<bool>();
  }));
  return found;
}

TEST(Check, FindsNothingInANewDaemon) {
  daemon_under_test daemon;
  auto found = idle_check(daemon);
  EXPECT_EQ(found["count"], 0);
  EXPECT_EQ(found["objects"], 0);
  EXPECT_TRUE(found["left_out"].empty()) << found;
}

TEST(Check, TellsWhoHasReferencesToAnObject) {
  daemon_under_test daemon({.host_bytes = 64 * mebibyte});
  tester client(daemon.socket());
  auto chain = chain_of(1, 6);
  client.store(chain);
  auto first = client.lookup(chain, true);
  auto second = client.lookup({chain.begin(), chain.begin() + 2}, true);
  auto read = client->read_lease(second.held.id(), {}, patiently());
  ASSERT_TRUE(read) << read.error().text;
  auto pinned = client->admin().pin(
      {.in = client.space(), .what = client::prefix::of_digests(std::span(chain).first(3))}, patiently());
  ASSERT_TRUE(pinned) << pinned.error().text;
  auto found = idle_check(daemon);
  EXPECT_EQ(found["count"], 0) << found;
  EXPECT_EQ(found["objects"], 6);
  EXPECT_EQ(found["references"], (json{{"leases", 8},
                                       {"pins", 3},
                                       {"readings", 2},
                                       {"sessions", 0},
                                       {"requests", 0},
                                       {"prompts", 0},
                                       {"tails of sessions", 0},
                                       {"tails of prompts", 0},
                                       {"tails of stores", 0}}));
  first.held.release();
  EXPECT_TRUE(eventually([&] { return idle_check(daemon)["references"]["leases"] == 2; }));
}

/// A reader keeps the lease under which it reads, and the lease remains charged to sessions.
TEST(Check, CountsWhatAReaderKeepsOfASessionThatHasEnded) {
  daemon_under_test daemon({.host_bytes = 64 * mebibyte});
  tail_client client(daemon.socket(), test_space());
  auto session = client.open({.mode = client::session_mode::held});
  auto saved = client.turn(session, prompt_of(1, 3 * space_chunk_tokens));
  ASSERT_EQ(saved.held_chunks, 3U);
  auto read = client->read_lease(saved.lease, {0, 1}, patiently());
  ASSERT_TRUE(read) << read.error().text;
  ASSERT_EQ(client->admin().close_session(session.id(), patiently()), true);
  auto found = idle_check(daemon);
  EXPECT_EQ(found["count"], 0) << found;
  EXPECT_EQ(found["references"]["sessions"], 3) << "the whole lease";
  EXPECT_EQ(found["references"]["readings"], 1);
  client->adopt(saved.lease).release();
  EXPECT_TRUE(eventually([&] { return idle_check(daemon)["references"]["sessions"] == 0; }));
  found = idle_check(daemon);
  EXPECT_EQ(found["count"], 0) << found;
  EXPECT_EQ(found["references"]["readings"], 0);
}

/// Otherwise a check would never be idle beside an engine that names its lookups.
TEST(Check, IsIdleOnceALookupWithAnIdIsAnswered) {
  daemon_under_test daemon({.host_bytes = 64 * mebibyte});
  tester client(daemon.socket());
  auto chain = chain_of(1, 4);
  client.store(chain);
  lookup_id id;
  id.bytes[0] = 1;
  auto found = client->lookup(
      {.in = client.space(), .what = client::prefix::of_digests(chain), .lease = true, .id = id},
      patiently());
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->found_chunks, 4U);
  EXPECT_TRUE(idle_check(daemon)["idle"].get<bool>());
}

TEST(Check, IsIdleWhileASubscriberWaits) {
  daemon_under_test daemon({.host_bytes = 64 * mebibyte});
  tester client(daemon.socket());
  client::event_cursor at;
  do {
    auto snapshot = client->admin().subscribe(at, 10, patiently());
    ASSERT_TRUE(snapshot) << snapshot.error().text;
    at = snapshot->next;
  } while (at.tier != client::event_cursor().tier);
  auto none = client->admin().subscribe(at, 10, client::within(std::chrono::milliseconds(50)));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, errc::deadline);
  EXPECT_TRUE(idle_check(daemon)["idle"].get<bool>()) << "the log of events waits for the next one";
  auto watch = client::connection::connect({.path = daemon.socket(), .name = "router"}, patiently());
  ASSERT_TRUE(watch) << watch.error().text;
  std::thread waits([&] {
    auto told = watch->admin().subscribe(at, 10, patiently());
    EXPECT_TRUE(told && !told->events.empty());
  });
  EXPECT_TRUE(idle_check(daemon)["idle"].get<bool>());
  client.store(chain_of(1, 1));
  waits.join();
}

TEST(Check, IsForOperators) {
  daemon_under_test daemon;
  auto done = terrace(daemon, {"check"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("0 differences"), std::string::npos) << done.out;
}

TEST(Check, RunsAtTheEndOfEveryTest) {
  daemon_under_test daemon;
  EXPECT_TRUE(daemon.check());
  daemon.signal(SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(daemon.pid(), &status, WUNTRACED), daemon.pid());
  EXPECT_FALSE(daemon.check()) << "a daemon that stands still is not asked";
  daemon.signal(SIGCONT);
}

/// The journals know what a restart finds before their first change.
TEST(Check, ComparesJournalsWithTheIndexOnEachPathAcrossRestarts) {
  temporary_folder a, b;
  daemon_under_test daemon(
      {.disk_bytes = 128 * mebibyte, .disk_paths = {a.path(), b.path()}, .state_dir = a.path()});
  auto first = chain_of(1, 12), second = chain_of(2, 12);
  {
    tester client(daemon.socket());
    ASSERT_TRUE(daemon.await_log("joined"));
    client.store(first);
    EXPECT_TRUE(eventually([&] { return client.tier("disk").objects == 12; }));
    EXPECT_EQ(idle_check(daemon)["count"], 0);
  }
  EXPECT_EQ(daemon.terminate(), 0);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  client.store(second);
  ASSERT_TRUE(
      client->admin().evict({.in = client.space(), .what = client::prefix::of_digests(first)}, patiently()));
  EXPECT_TRUE(eventually([&] { return client.tier("disk").objects == 12; }));
  EXPECT_EQ(idle_check(daemon)["count"], 0);
  ASSERT_TRUE(client->admin().clear(nullptr, patiently()));
  client.store(first);
  EXPECT_TRUE(eventually([&] { return client.tier("disk").objects == 12; }));
  EXPECT_EQ(idle_check(daemon)["count"], 0);
}

TEST(Check, OneAtATime) {
  daemon_under_test daemon;
  tester client(daemon.socket());
  client.store(chain_of(1, 20));
  std::atomic<uint64_t> checked{0};
  auto work = [&] {
    auto by = client::connection::connect({.path = daemon.socket(), .observes = true}, patiently());
    ASSERT_TRUE(by) << by.error().text;
    for (int n = 0; n < 50; ++n) {
      auto found = by->admin().check(patiently());
      if (found) {
        EXPECT_EQ(found->count, 0U) << found->differences.front();
        ++checked;
      } else {
        EXPECT_EQ(found.error().code, errc::busy) << found.error().text;
      }
    }
  };
  std::thread first(work), second(work);
  first.join();
  second.join();
  EXPECT_NE(checked, 0U);
}

/// Clients store, look up, lease, read and forget in a host memory that is too small, with and without a
/// disk, while checks run all the time.
void check_under_load(uint64_t disk_bytes, const std::string& disk) {
  daemon_under_test daemon({.host_bytes = 24 * mebibyte, .disk_bytes = disk_bytes, .disk = disk});
  if (disk_bytes != 0) {
    ASSERT_TRUE(daemon.await_log("joined"));
  }
  std::atomic<bool> over{false};
  auto work = [&](uint64_t seed) {
    tester client(daemon.socket(), "worker", 4 * object_bytes);
    for (uint64_t round = 0; !over; ++round) {
      auto chain = chain_of(seed * 100 + round % 9, 3 + round % 2);
      auto stored = client->store(client.store_of(chain), patiently());
      EXPECT_TRUE(stored || stored.error().code == errc::no_space) << stored.error().text;
      auto found = client.lookup(chain, true);
      if (found.held && round % 2 == 0)
        (void) client->read_lease(found.held.id(), {}, patiently());
      if (round % 5 == 4)
        (void) client->admin().evict({.in = client.space(), .what = client::prefix::of_digests(chain)},
                                     patiently());
      if (round % 11 == 10)
        client->admin().clear(nullptr, patiently());
    }
  };
  std::thread first(work, 1), second(work, 2);
  uint64_t objects = 0;
  auto observer = client::connection::connect({.path = daemon.socket(), .observes = true}, patiently());
  for (int n = 0; observer && (n < 40 || objects == 0); ++n) { // continues until the clients have begun
    auto found = observer->admin().check(patiently());
    EXPECT_TRUE(found) << found.error().text;
    if (!found)
      break;
    for (const std::string& one : found->differences)
      ADD_FAILURE() << one;
    objects += found->objects;
  }
  over = true;
  first.join();
  second.join();
  EXPECT_TRUE(observer);
  EXPECT_EQ(idle_check(daemon)["count"], 0);
}

TEST(Check, FindsNothingWhileClientsWork) { check_under_load(0, ""); }
TEST(Check, FindsNothingWhileClientsWorkWithADisk) { check_under_load(64 * mebibyte, ""); }
TEST(Check, FindsNothingWhileVictimsAreWritten) {
  check_under_load(64 * mebibyte, "demotion = \"write_back\"\n");
}

} // namespace
} // namespace terrace::e2e
