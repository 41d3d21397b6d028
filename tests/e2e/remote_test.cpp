// A remote tier on a real redis-server: what host memory and the disk no longer have is found there, and a store that
// fails or lies costs misses only.
#include "remote_fixture.hpp"

#include "tests/support/process_memory.hpp"
#include "tests/support/scrape.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>

namespace terrace::e2e {
namespace {

class RemoteTier : public RemoteStores {
 protected:
  void start_daemon(const daemon_options& options, bool in_service = true) {
    daemon_ = std::make_unique<daemon_under_test>(options);
    client_ = std::make_unique<tester>(daemon_->socket());
    if (in_service) {
      ASSERT_TRUE(eventually([&] { return client_->tier("remote").state == "ready"; }));
    }
  }
  void start() {
    start_store();
    start_daemon({.more = section()});
  }

  /// Stores the chain, waits until the store has it, and fills host memory with others.
  void store_far(const std::vector<digest>& chain) {
    EXPECT_EQ(client_->store(chain), chain.size());
    ASSERT_TRUE(
        eventually([&] { return client_->lookup(chain, false, on_remote).found_chunks == chain.size(); }));
    leave_host(chain);
  }
  void leave_host(const std::vector<digest>& chain) {
    occupy(*client_, 100, objects_in(remote_host_memory));
    EXPECT_EQ(leased_objects(*client_, 0), 0U);
    EXPECT_EQ(client_->lookup(chain, false, on_host).found_chunks, 0U);
  }
  std::string reason() { return client_->tier("remote").reason; }

  std::unique_ptr<daemon_under_test> daemon_;
  std::unique_ptr<tester> client_;
};

TEST_F(RemoteTier, ALeaseHoldsAllThatItBringsToAFullHostMemory) {
  start();
  auto chain = chain_of(1, 12); // more than are read at a time
  store_far(chain);
  const auto before = client_->tier("remote").hit_tokens;
  const auto leased = client_->lookup(chain, true);
  EXPECT_EQ(leased.found_chunks, chain.size());
  EXPECT_EQ(leased.brought_chunks, chain.size());
  EXPECT_EQ(client_->tier("remote").hit_tokens - before, chain.size() * space_chunk_tokens)
      << "they count as the store's";
  EXPECT_EQ(client_->lookup(chain, true).brought_chunks, 0U) << "they are here now";
  EXPECT_EQ(client_->tier("remote").bytes_read, chain.size() * object_bytes);
}

TEST_F(RemoteTier, ALeaseWhoseTimeIsOverHoldsWhatHasCome) {
  start_store();
  const uint16_t port = test::free_port();
  start_daemon({.metrics = "127.0.0.1:" + std::to_string(port), .more = section()});
  auto chain = chain_of(1, 8);
  store_far(chain);
  EXPECT_EQ(client_->lookup({chain.begin(), chain.begin() + 3}, true).found_chunks, 3U)
      << "which is in host memory then";
  ASSERT_TRUE(eventually([&] { return client_->lookup(chain, false, on_remote).found_chunks == 8; }));
  ASSERT_TRUE(test::suspend(store_->pid()));
  const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(2'000);
  auto some = (*client_)->lookup(client_->lookup_of(chain, true, 0), soon);
  ASSERT_TRUE(some) << some.error().text;
  EXPECT_EQ(some->found_chunks, 3U);
  EXPECT_EQ(some->pending_chunks, 5U);
  EXPECT_TRUE(some->held);
  EXPECT_GT(test::number_behind(test::scrape(port),
                                "terrace_miss_tokens_total{group=\"default\",reason=\"pending\"}"),
            0);
  ::kill(store_->pid(), SIGCONT);
  EXPECT_TRUE(eventually([&] {
    auto whole = client_->lookup(chain, true);
    return whole.found_chunks == chain.size() && whole.pending_chunks == 0;
  })) << "another lookup goes on with the rest";
}

TEST_F(RemoteTier, ALeaseSaysWhatItLeavesToItsClient) {
  start_store();
  start_daemon({.more = section()});
  auto chain = chain_of(1, 24);
  store_far(chain);
  auto question = client_->lookup_of(chain, true, 0);
  question.options.prefill_tokens_per_s = 4'000'000'000;
  auto found = (*client_)->lookup(question, patiently());
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_LT(found->found_chunks, chain.size()) << "computing is always faster";
  EXPECT_EQ(found->found_chunks + found->recompute_chunks, chain.size());
}

TEST_F(RemoteTier, IsBelowTheDisk) {
  start_store();
  start_daemon({.disk_bytes = 128 * mebibyte, .more = section()});
  ASSERT_TRUE(daemon_->await_log("joined"));
  auto chain = chain_of(1, 4);
  store_far(chain);
  ASSERT_TRUE(
      eventually([&] { return client_->lookup(chain).tiers == std::vector<tier_kind>(4, tier_kind::disk); }));
  auto gone = (*client_)->admin().evict(
      {.in = client_->space(), .what = client::prefix::of_digests(chain), .tiers = on_disk}, patiently());
  ASSERT_TRUE(gone) << gone.error().text;
  EXPECT_EQ(client_->lookup(chain).tiers, std::vector<tier_kind>(4, tier_kind::remote));
  EXPECT_EQ(client_->load_and_check(chain), 4U);
}

TEST_F(RemoteTier, ByDefaultGetsWhatIsUsedTwice) {
  start_store();
  start_daemon({.more = section("")});
  auto once = chain_of(1, 2), twice = chain_of(2, 2);
  client_->store(once);
  client_->store(twice);
  EXPECT_EQ(client_->load_and_check(twice), 2U);
  ASSERT_TRUE(eventually([&] { return client_->lookup(twice, false, on_remote).found_chunks == 2; }));
  EXPECT_EQ(client_->lookup(once, false, on_remote).found_chunks, 0U);
}

TEST_F(RemoteTier, WritesNoMoreThanItsBudget) {
  start_store();
  const uint16_t port = test::free_port();
  const auto with = [&](const std::string& budget) {
    return daemon_options{.metrics = "127.0.0.1:" + std::to_string(port),
                          .more =
                              section("demotion = \"write_through\"\nwrite_budget = \"" + budget + "\"\n")};
  };
  start_daemon(with("1GiB/s, 96MiB/day")); // 4 MiB at a time
  auto chain = chain_of(1, 8);
  EXPECT_EQ(client_->store(chain), chain.size());
  const auto refused = [&] {
    return test::number_behind(
        test::scrape(port),
        "terrace_tier_refused_total{group=\"default\",tier=\"remote\",reason=\"endurance\"}");
  };
  ASSERT_TRUE(eventually([&] { return refused() > 0; }));
  EXPECT_TRUE(eventually([&] {
    return client_->lookup(chain, false, on_remote).found_chunks ==
           chain.size() - static_cast<size_t>(refused());
  })) << "the begin of the chain";
  EXPECT_EQ(client_->lookup(chain).found_chunks, chain.size()) << "and all of it is in host memory";
  daemon_->configure(with(""));
  daemon_->signal(SIGHUP);
  ASSERT_TRUE(daemon_->await_log("remote[0].write_budget: \"1GiB/s, 96MiB/day\" -> \"\", in force now"));
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(client_->load_and_check(chain), chain.size());
    return client_->lookup(chain, false, on_remote).found_chunks == chain.size();
  })) << "what is used again is written now";
}

const std::string write_back = "demotion = \"write_back\"\n";

TEST_F(RemoteTier, WhatIsWrittenBackIsFoundByAnotherMachine) {
  start_store();
  remote_machine a({.more = section(write_back)}), b({.more = section(write_back)});
  a.await_store();
  b.await_store();
  auto chain = chain_of(1, 4);
  EXPECT_EQ(a.client->store(chain), 4U);
  EXPECT_EQ(a.client->load_and_check(chain), 4U);
  EXPECT_EQ(a.found(chain, on_remote), 0U) << "it is in host memory";
  a.leave_host(chain);
  EXPECT_EQ(b.found(chain), 4U) << "the eviction has waited until it was written";
  EXPECT_EQ(b.client->load_and_check(chain), 4U);
  EXPECT_EQ(a.client->load_and_check(chain), 4U);
}

TEST_F(RemoteTier, AnOrderlyEndWritesBackWhatHostMemoryHas) {
  start_store();
  remote_machine b({.more = section(write_back)});
  b.await_store();
  auto chain = chain_of(1, 8);
  {
    remote_machine a({.more = section(write_back)});
    a.await_store();
    EXPECT_EQ(a.client->store(chain), chain.size());
    EXPECT_EQ(b.found(chain), 0U);
    a.client.reset();
    EXPECT_EQ(a.daemon.terminate(), 0);
    EXPECT_FALSE(a.daemon.has_logged("were not written")) << a.daemon.log();
  }
  EXPECT_TRUE(b.finds_all(chain));
  EXPECT_EQ(b.client->load_and_check(chain), chain.size());
}

TEST_F(RemoteTier, AnOrderlyEndWritesNoValuesOfRedisClients) {
  start_store();
  const std::string door = folder_ / "door.sock";
  start_daemon({.more = section(write_back) + resp_section(door)});
  auto chain = chain_of(1, 2);
  EXPECT_EQ(client_->store(chain), chain.size());
  EXPECT_EQ(resp_client(door).call({"SET", "key", std::string(100'000, 'v')}), "OK");
  client_.reset();
  EXPECT_EQ(daemon_->terminate(), 0);
  EXPECT_EQ(ask_store({"DBSIZE"}), 4) << "two objects and two tokens: nobody would find the value";
}

TEST_F(RemoteTier, WithoutAStoreWhatWouldBeWrittenBackIsDropped) {
  start_store();
  const uint16_t port = test::free_port();
  start_daemon({.metrics = "127.0.0.1:" + std::to_string(port), .more = section(write_back)});
  store_.reset();
  ASSERT_TRUE(daemon_->await_log("is out of service"));
  const auto rounds = 2 * remote_host_memory / (4 * object_bytes);
  for (uint64_t seed = 1; seed <= rounds; ++seed)
    EXPECT_EQ(client_->store(chain_of(seed, 4)), 4U) << "no eviction waits";
  EXPECT_GT(test::number_behind(
                test::scrape(port),
                "terrace_tier_demotions_failed_total{group=\"default\",tier=\"host\",reason=\"degraded\"}"),
            0);
  auto last = chain_of(rounds, 4);
  EXPECT_EQ(client_->load_and_check(last), 4U);
  std::filesystem::remove(folder_ / "redis.sock");
  start_store();
  ASSERT_TRUE(daemon_->await_log("is in service again"));
  leave_host(last);
  EXPECT_EQ(client_->load_and_check(last), 4U) << "written when it was evicted";
  store_.reset();
  client_.reset();
  EXPECT_EQ(daemon_->terminate(), 0);
  EXPECT_TRUE(daemon_->has_logged("objects in host memory were not written to a tier below: "
                                  "its device was out of service"))
      << daemon_->log();
}

TEST_F(RemoteTier, AStoreThatStandsStillStopsNoEvictionThatWritesBack) {
  start_store();
  start_daemon({.more = section(write_back, "30ms")});
  auto chain = chain_of(1, 4);
  EXPECT_EQ(client_->store(chain), 4U);
  leave_host(chain);
  ASSERT_TRUE(test::suspend(store_->pid()));
  const auto rounds = 2 * remote_host_memory / (4 * object_bytes);
  for (uint64_t seed = 1'000; seed < 1'000 + rounds; ++seed)
    EXPECT_EQ(client_->store(chain_of(seed, 4)), 4U);
  EXPECT_TRUE(daemon_->await_log("it does not answer"));
  ::kill(store_->pid(), SIGCONT);
  ASSERT_TRUE(daemon_->await_log("is in service again"));
  EXPECT_TRUE(eventually([&] { return client_->load_and_check(chain) == 4U; })) << "it still has them";
}

TEST_F(RemoteTier, WritesBackWhatTheDiskGetsAtItsSecondUse) {
  start_store();
  start_daemon({.disk_bytes = 128 * mebibyte,
                .disk = "admission = \"always\"\ndemotion = \"selective\"\n",
                .more = section(write_back)});
  ASSERT_TRUE(daemon_->await_log("joined"));
  auto once = chain_of(1, 4), twice = chain_of(2, 4);
  EXPECT_EQ(client_->store(once), 4U);
  EXPECT_EQ(client_->store(twice), 4U);
  EXPECT_EQ(client_->load_and_check(twice), 4U);
  leave_host(once);
  EXPECT_EQ(client_->lookup(twice, false, on_host).found_chunks, 0U);
  EXPECT_EQ(client_->lookup(once, false, on_disk).found_chunks, 0U);
  EXPECT_EQ(client_->lookup(twice, false, on_disk).found_chunks, 4U);
  EXPECT_EQ(client_->lookup(once, false, on_remote).found_chunks, 4U);
  EXPECT_EQ(client_->lookup(twice, false, on_remote).found_chunks, 4U);
}

TEST_F(RemoteTier, KeepsNoMoreInMindThanItMay) {
  start_store();
  start_daemon({.host_bytes = 8 * mebibyte, .more = section()});
  for (uint64_t seed = 1; seed <= 40; ++seed)
    EXPECT_EQ(client_->store(chain_of(seed, 4)), 4U);
  ASSERT_TRUE(eventually([&] { return client_->tier("remote").evictions > 0; }));
  ASSERT_TRUE(eventually([&] {
    auto objects = client_->tier("remote").objects;
    return objects <= 128 && ask_store({"DBSIZE"}) > static_cast<int64_t>(objects);
  })) << "what it has forgotten is there for others";
}

// Every request in here ends while the store stands still.
TEST_F(RemoteTier, AStoreThatStandsStillHoldsNobodyUp) {
  start_store();
  const uint16_t port = test::free_port();
  start_daemon({.metrics = "127.0.0.1:" + std::to_string(port), .more = impatient_section()});
  auto chain = chain_of(1, 4), later = chain_of(2, 4);
  store_far(chain);
  ASSERT_TRUE(test::suspend(store_->pid()));
  EXPECT_EQ(client_->load_and_check(chain), 0U);
  EXPECT_TRUE(daemon_->await_log("it does not answer"));
  EXPECT_GT(test::number_behind(
                test::scrape(port),
                "terrace_remote_misses_total{group=\"default\",tier=\"remote\",reason=\"unanswered\"}"),
            0);
  EXPECT_EQ(client_->lookup(chain).found_chunks, 0U) << "the tier is skipped";
  EXPECT_EQ(client_->load_and_check(chain), 0U);
  EXPECT_EQ(client_->store(later), 4U);
  EXPECT_EQ(client_->load_and_check(later), 4U);
  ::kill(store_->pid(), SIGCONT);
  ASSERT_TRUE(daemon_->await_log("is in service again"));
  EXPECT_EQ(client_->load_and_check(chain), 4U) << "it still has them";
}

TEST_F(RemoteTier, AStoreThatStandsStillWhileItIsWrittenToHoldsNobodyUp) {
  start_store();
  start_daemon({.more = impatient_section()});
  store_far(chain_of(1, 4));
  ASSERT_TRUE(test::suspend(store_->pid()));
  const auto rounds = 2 * remote_host_memory / (4 * object_bytes);
  for (uint64_t seed = 1'000; seed < 1'000 + rounds; ++seed)
    EXPECT_EQ(client_->store(chain_of(seed, 4)), 4U) << "memory that is being sent is needed";
  EXPECT_TRUE(daemon_->await_log("it does not answer"));
  ::kill(store_->pid(), SIGCONT);
  ASSERT_TRUE(daemon_->await_log("is in service again"));
  auto last = chain_of(1'000 + rounds - 1, 4);
  EXPECT_EQ(client_->lookup(last, false, on_remote).found_chunks, 0U);
  EXPECT_EQ(client_->load_and_check(last), 4U);
  EXPECT_TRUE(eventually([&] { return client_->lookup(last, false, on_remote).found_chunks == 4; }))
      << "what could not be written is written when it is used";
}

TEST_F(RemoteTier, ADaemonThatStartsBesideAStoppedStoreUsesItOnceItGoesOn) {
  start_store();
  ASSERT_TRUE(test::suspend(store_->pid()));
  start_daemon({.more = impatient_section()}, false);
  auto chain = chain_of(1, 4);
  EXPECT_EQ(client_->store(chain), 4U);
  EXPECT_EQ(client_->load_and_check(chain), 4U);
  EXPECT_EQ(client_->lookup(chain_of(2, 4)).found_chunks, 0U);
  ::kill(store_->pid(), SIGCONT);
  ASSERT_TRUE(eventually([&] { return client_->tier("remote").state == "ready"; }));
  store_far(chain_of(3, 4));
}

bool has_transfer_worker(pid_t process) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name == "transfer-0")
      return true;
  }
  return false;
}

TEST_F(RemoteTier, ItsBytesDoNotPassTheWorkersOfClients) {
  start_store();
  const uint16_t port = test::free_port();
  start_daemon({.metrics = "127.0.0.1:" + std::to_string(port), .more = section()});
  EXPECT_TRUE(has_transfer_worker(daemon_->pid()));
  auto completions = [&](const std::string& worker) {
    return test::number_behind(test::scrape(port),
                               "terrace_worker_completions_total{worker=\"" + worker + "\"}");
  };
  auto chain = chain_of(1, 4);
  store_far(chain);
  const double before = completions("transfer-0");
  EXPECT_EQ(client_->load_and_check(chain), 4U);
  EXPECT_GE(completions("transfer-0"), before + 4) << "the commands and the values";
  daemon_under_test without;
  EXPECT_FALSE(has_transfer_worker(without.pid())) << "nothing is spent on remote tiers where there are none";
}

TEST_F(RemoteTier, WithoutAStoreTheDaemonServes) {
  start_daemon({.more = section()}, false);
  ASSERT_TRUE(daemon_->await_log("it cannot be reached"));
  auto chain = chain_of(1, 4);
  EXPECT_EQ(client_->store(chain), 4U);
  EXPECT_EQ(client_->load_and_check(chain), 4U);
  start_store();
  ASSERT_TRUE(daemon_->await_log("is in service again"));
}

TEST_F(RemoteTier, GivesThePasswordAndSaysIfItIsWrong) {
  const std::string file = folder_ / "password";
  write_file(file, "hunter2\n");
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  start_store({"--requirepass", "hunter2"});
  auto with = section("demotion = \"write_through\"\npassword_file = \"" + file + "\"\n");
  start_daemon({.more = with});
  store_far(chain_of(1, 2));
  EXPECT_EQ(client_->load_and_check(chain_of(1, 2)), 2U);
  client_.reset();
  write_file(file, "hunter3\n");
  EXPECT_EQ(daemon_->terminate(), 0);
  daemon_->start();
  client_ = std::make_unique<tester>(daemon_->socket());
  EXPECT_TRUE(daemon_->await_log("check user and password_file"));
  EXPECT_EQ(client_->tier("remote").state, "degraded");
  EXPECT_FALSE(daemon_->has_logged("hunter"));
}

TEST_F(RemoteTier, GivesTheUserInTheSecondLine) {
  const std::string file = folder_ / "password";
  write_file(file, "hunter2\nkv\n");
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  start_store({"--user", "kv", "on", ">hunter2", "~terrace/*", "+hello", "+auth", "+exists", "+get", "+set",
               "+unlink", "+client", "--requirepass", "other"});
  start_daemon({.more = section("demotion = \"write_through\"\npassword_file = \"" + file + "\"\n")});
  store_far(chain_of(1, 2));
  EXPECT_EQ(client_->load_and_check(chain_of(1, 2)), 2U);
}

TEST_F(RemoteTier, SomethingElseAtTheAddressIsNotUsed) {
  const std::string door = folder_ / "redis.sock"; // a daemon's own socket speaks another protocol
  daemon_under_test other({.listen = "[[listen]]\npath = \"" + door + "\"\n"});
  other.is_not_checked();
  start_daemon({.more = section()}, false);
  EXPECT_TRUE(daemon_->await_log("is out of service"));
  EXPECT_EQ(client_->store(chain_of(1, 4)), 4U);
}

TEST_F(RemoteTier, MayBeAtAPort) {
  auto port = std::to_string(test::free_port());
  start_store({"--port", port, "--bind", "127.0.0.1"});
  start_daemon({.more = "[[remote]]\naddress = \"127.0.0.1:" + port + "\"\nrealm_key_file = \"" + key_file() +
                        "\"\ndemotion = \"write_through\"\n"});
  store_far(chain_of(1, 4));
  EXPECT_EQ(client_->load_and_check(chain_of(1, 4)), 4U);
}

TEST_F(RemoteTier, NeedsAKeyThatOnlyItsUserReads) {
  start_store();
  ASSERT_EQ(::chmod(key_file().c_str(), 0644), 0);
  write_file(folder_ / "short", "too short");
  ASSERT_EQ(::chmod((folder_ / "short").c_str(), 0600), 0);
  auto said = [&](const std::string& key) -> std::string {
    const std::string file = folder_ / "terraced.toml";
    write_file(file, "[[listen]]\npath = \"" + (folder_ / "socket").string() + "\"\n" + "[disk]\npath = \"" +
                         folder_.path() + "\"\n[[remote]]\naddress = \"/none\"\n" +
                         (key.empty() ? "" : "realm_key_file = \"" + key + "\"\n"));
    return run({program("TERRACED"), "--check", "--config", file}).err;
  };
  EXPECT_NE(said("").find("head -c 32 /dev/urandom"), std::string::npos) << said("");
  EXPECT_NE(said(key_file()).find("chmod o="), std::string::npos) << said(key_file());
  EXPECT_NE(said(folder_ / "short").find("32 to 1,024 bytes was expected, not of 9"), std::string::npos)
      << said(folder_ / "short");
}

} // namespace
} // namespace terrace::e2e
