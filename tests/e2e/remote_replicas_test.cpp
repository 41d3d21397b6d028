// Replicas of a cluster that serve reads of payloads: who is read, what happens when one lags, stands still or ends, failovers, and clears.
#include "cluster_fixture.hpp"

#include "tests/support/certificates.hpp"
#include "tests/support/process_memory.hpp"
#include "tests/support/scrape.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

namespace terrace::e2e {
namespace {

class RemoteReplicas : public RemoteCluster {
 protected:
  using chains = std::vector<std::vector<digest>>;

  void SetUp() override {
    RemoteCluster::SetUp();
    address_options_ = "?reads=replicas";
  }
  /// A node lists a replica once it has heard that this one has received something: with the first ping of its primary.
  void start_listed(std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--repl-ping-replica-period", "1"});
    start(redis_cluster::primaries, 0, options);
    await_lists();
  }
  /// One primary with its replica.
  void start_pair(std::vector<std::string> options = {}, bool tls = false) {
    options.insert(options.end(), {"--repl-ping-replica-period", "1"});
    cluster_.emplace(
        redis_cluster::shape{.replicas = 1, .options = std::move(options), .only = 1, .tls = tls});
    await_lists();
  }
  void await_lists() const {
    const std::string ports =
        "local all = '' for _, range in ipairs(redis.call('cluster', 'slots')) do "
        "for i = 3, #range do all = all .. ' ' .. range[i][2] end end return all .. ' '";
    for (size_t at = 0; at < cluster_->size(); ++at)
      for (size_t i = 0; i < cluster_->size(); ++i) {
        const std::string address = cluster_->address(i);
        const std::string port = " " + address.substr(address.find(':') + 1) + " ";
        EXPECT_TRUE(eventually([&] {
          return cluster_->ask(at, {"EVAL", ports, "0"}).find(port) != std::string::npos;
        }));
      }
  }
  size_t replica_of(size_t primary) const { return cluster_->primary_count() + primary; }

  int64_t stat(size_t node, const std::string& section, const std::string& name) const {
    const std::string told = cluster_->ask(node, {"INFO", section});
    const auto at = told.find(name);
    return at == std::string::npos ? 0 : std::stoll(told.substr(at + name.size()));
  }
  /// Values that the node was asked for, tokens among them.
  int64_t gets(size_t node) const { return stat(node, "commandstats", "cmdstat_get:calls="); }
  int64_t gets_of_all(size_t first) const {
    int64_t sum = 0;
    for (size_t i = first; i < first + cluster_->primary_count(); ++i)
      sum += cluster_->runs(i) ? gets(i) : 0;
    return sum;
  }
  int64_t gets_of_replicas() const { return gets_of_all(cluster_->primary_count()); }
  /// Connections but the one that asks.
  int64_t connections(size_t node) const {
    const std::string told = cluster_->ask(node, {"CLIENT", "LIST", "TYPE", "normal"});
    return std::ranges::count(told, '\n') - 1;
  }
  void await_copies() const {
    for (size_t i = 0; i < cluster_->primary_count(); ++i)
      ASSERT_TRUE(eventually([&] { return cluster_->keys(replica_of(i)) == cluster_->keys(i); }));
  }
  static void loads_all(const remote_machine& at, const chains& all) {
    for (const auto& each : all)
      EXPECT_EQ(at.client->load_and_check(each), 1U);
  }
  static void loads_whatever_is_there(const remote_machine& at, const chains& all) {
    for (const auto& each : all)
      EXPECT_LE(at.client->load_and_check(each), 1U);
  }
  /// The replica hears of nothing that its primary does from now on, and keeps what it has.
  void cut_off(size_t replica) const {
    const size_t primary = replica - cluster_->primary_count();
    EXPECT_EQ(cluster_->ask(primary, {"ACL", "SETUSER", "default", "-psync", "-sync"}), "OK");
    EXPECT_EQ(cluster_->ask(primary, {"CLIENT", "KILL", "TYPE", "replica"}), "(integer) 1");
    EXPECT_TRUE(eventually([&] {
      return cluster_->ask(replica, {"INFO", "replication"}).find("master_link_status:down") !=
             std::string::npos;
    }));
  }
  void cut_off_all() const {
    for (size_t i = 0; i < cluster_->primary_count(); ++i)
      cut_off(replica_of(i));
  }
  /// Of the only daemon, at the replica.
  std::string port_of_reader(size_t replica) const {
    const std::string told = cluster_->ask(replica, {"CLIENT", "LIST", "TYPE", "normal"});
    const std::string before = " addr=127.0.0.1:";
    const auto at = told.find(before);
    EXPECT_NE(at, std::string::npos) << told;
    const auto begin = at + before.size();
    return told.substr(begin, told.find(' ', begin) - begin);
  }
  /// The process that has the address has received bytes from this port, and has not read them.
  static bool has_unread_bytes(const std::string& address, const std::string& from) {
    const auto hex = [](const std::string& port) {
      char text[8];
      std::snprintf(text, sizeof text, ":%04X", std::stoi(port));
      return std::string(text);
    };
    const std::string here = hex(address.substr(address.find(':') + 1)), there = hex(from);
    std::ifstream connections("/proc/net/tcp");
    for (std::string line; std::getline(connections, line);) {
      const auto each = words_of(line.substr(line.find_first_not_of(' ')));
      if (each.size() > 4 && each[1].ends_with(here) && each[2].ends_with(there))
        return !each[4].ends_with(":00000000");
    }
    return false;
  }
  static nlohmann::json state_of(const remote_machine& at, const std::string& address, bool replica) {
    const auto shown = status(at);
    for (const auto& node : shown["nodes"])
      if (node["address"] == address && node["replica"] == replica)
        return node["state"];
    return "unknown";
  }
  void await_replicas(const remote_machine& at) const {
    for (size_t i = 0; i < cluster_->primary_count(); ++i)
      EXPECT_TRUE(
          eventually([&] { return state_of(at, cluster_->address(replica_of(i)), true) == "ready"; }));
  }
};

TEST_F(RemoteReplicas, PayloadsAreReadFromReplicas) {
  start_listed();
  auto a = machine(), b = machine();
  auto all = singles(1, 20);
  store_all(*a, all);
  await_copies();
  await_replicas(*a);
  await_replicas(*b);
  ASSERT_TRUE(finds_all(*b, all));
  const int64_t of_primaries = gets_of_all(0), of_replicas = gets_of_replicas();
  loads_all(*b, all);
  EXPECT_EQ(gets_of_replicas() - of_replicas, 20);
  EXPECT_EQ(gets_of_all(0), of_primaries) << "one at a time: no primary has to help";
  for (size_t i = 0; i < redis_cluster::primaries; ++i) {
    EXPECT_EQ(stat(replica_of(i), "commandstats", "cmdstat_readonly:calls="), 2) << "once for each machine";
    EXPECT_EQ(stat(replica_of(i), "commandstats", "cmdstat_exists:calls="), 0);
    EXPECT_EQ(connections(replica_of(i)), 2);
  }
  const auto shown = status(*b);
  ASSERT_EQ(shown["nodes"].size(), 6U) << shown;
  for (size_t i = 0; i < redis_cluster::primaries; ++i) {
    EXPECT_EQ(state_of(*b, cluster_->address(i), false), "ready") << shown;
    EXPECT_EQ(state_of(*b, cluster_->address(replica_of(i)), true), "ready") << shown;
  }
  EXPECT_TRUE(shown["misses"].empty()) << shown;
  const auto text = terrace(b->daemon, {"remote", "status"}).out;
  EXPECT_NE(text.find("replica  " + cluster_->address(5) + ", ready, 5,462 slots"), std::string::npos)
      << text;
}

TEST_F(RemoteReplicas, AnObjectOfSeveralPartsIsReadFromAReplica) {
  start_listed();
  auto spec = test_space();
  spec.pools[0].object_bytes = 4 * object_bytes;
  auto a = machine(spec, "encrypt = true\n"), b = machine(spec, "encrypt = true\n");
  const auto chain = chain_of(1, 1), contents = chain_of(2, 4);
  const std::vector<client::run> whole{{.offset = 0, .bytes = 4 * object_bytes}};
  for (size_t i = 0; i < contents.size(); ++i)
    fill_content(contents[i], a->client->piece(i));
  auto request = a->client->store_of(chain);
  request.runs = whole;
  ASSERT_TRUE((*a->client)->store(request, patiently()));
  ASSERT_TRUE(a->finds_all(chain, on_remote));
  await_copies();
  await_replicas(*b);
  ASSERT_TRUE(b->finds_all(chain));
  const int64_t before = gets_of_replicas();
  auto wanted = b->client->load_of(chain);
  wanted.runs = whole;
  auto loaded = (*b->client)->load(wanted, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 1U);
  for (size_t i = 0; i < contents.size(); ++i)
    EXPECT_TRUE(has_content(contents[i], b->client->piece(i)));
  EXPECT_EQ(gets_of_replicas() - before, 4);
}

TEST_F(RemoteReplicas, NoReplicaIsConnectedToUnlessTheAddressSaysSo) {
  start_listed();
  address_options_.clear();
  auto a = machine();
  auto all = singles(1, 6);
  store_all(*a, all);
  EXPECT_EQ(status(*a)["nodes"].size(), 3U);
  for (size_t i = 0; i < redis_cluster::primaries; ++i) {
    EXPECT_EQ(connections(replica_of(i)), 0);
    EXPECT_TRUE(eventually([&] { return connections(i) == 3; }));
  }
}

// ---- replicas that lag ----

TEST_F(RemoteReplicas, WhatAReplicaDoesNotHaveYetIsReadFromItsPrimary) {
  start_listed();
  const uint16_t port = test::free_port();
  auto a = machine();
  remote_machine b({.metrics = "127.0.0.1:" + std::to_string(port), .more = cluster_section()});
  b.await_store();
  await_replicas(b);
  auto early = singles(1, 3), all = singles(100, 12);
  store_all(*a, early);
  store_all(*a, all);
  await_copies();
  ASSERT_TRUE(finds_all(b, early));
  ASSERT_TRUE(finds_all(b, all));
  loads_all(b, early);
  for (size_t i = 0; i < redis_cluster::primaries;
       ++i) { // they evict by themselves, as one that lags has nothing
    for (const auto& [option, value] : {std::pair("maxmemory-policy", "allkeys-lru"),
                                        {"replica-ignore-maxmemory", "no"},
                                        {"maxmemory", "1"}})
      EXPECT_EQ(cluster_->ask(replica_of(i), {"CONFIG", "SET", option, value}), "OK");
    ASSERT_TRUE(eventually([&] { return cluster_->keys(replica_of(i)) == 0; }));
  }
  loads_all(b, all);
  auto count = [&](const std::string& answer) {
    return test::number_behind(
        test::scrape(port),
        "terrace_remote_replica_reads_total{group=\"default\",tier=\"remote\",answer=\"" + answer + "\"}");
  };
  EXPECT_EQ(count("read"), 3);
  EXPECT_EQ(count("asked_primary"), 12);
  const auto shown = status(b);
  EXPECT_TRUE(shown["misses"].empty()) << shown;
  EXPECT_EQ(shown["notice"], "") << shown;
  EXPECT_EQ(stored(), 15) << "nothing was removed because a replica lags";
}

TEST_F(RemoteReplicas, AReplicaThatHasNotHeardOfAClearBringsNothingBack) {
  start_listed();
  auto a = machine(), b = machine();
  auto all = singles(1, 9);
  store_all(*a, all);
  await_copies();
  await_replicas(*b);
  ASSERT_TRUE(finds_all(*b, all));
  cut_off_all();
  ASSERT_TRUE((*a->client)->admin().clear(nullptr, patiently()));
  EXPECT_TRUE(b->daemon.await_log("was cleared by another machine"));
  EXPECT_EQ(found(*b, all), 0U);
  for (const auto& each : all)
    EXPECT_EQ(b->client->load_and_check(each), 0U) << "its replica has the object, and the token from before";
  auto c = machine();
  EXPECT_EQ(found(*c, all), 0U) << "nor for a machine that knows of nothing";
  store_all(*a, all);
  EXPECT_TRUE(finds_all(*b, all));
  loads_all(*b, all);
}

// ---- replicas whose values are damaged ----

TEST_F(RemoteReplicas, DamageAtAReplicaIsCountedAndItsPrimaryIsRead) {
  start_pair();
  const auto flip = [this](resp_client by) { // a bit of each value behind its header
    EXPECT_EQ(by.call({"EVAL",
                       "for _, k in ipairs(redis.call('keys', ARGV[1])) do "
                       "redis.call('setbit', k, 4000, 1 - redis.call('getbit', k, 4000)) end return 1",
                       "0", object_keys}),
              "(integer) 1");
    return by;
  };
  const std::string kinds[] = {"", "encrypt = true\n"};
  const auto all = singles(1, 6);
  std::vector<std::unique_ptr<remote_machine>> readers;
  std::vector<uint16_t> ports;
  for (const std::string& more : kinds) {
    store_all(*machine(test_space(), more), all);
    ports.push_back(test::free_port());
    readers.push_back(std::make_unique<remote_machine>(
        daemon_options{.metrics = "127.0.0.1:" + std::to_string(ports.back()),
                       .more = cluster_section("demotion = \"write_through\"\n" + more)}));
    readers.back()->await_store();
    await_replicas(*readers.back());
  }
  EXPECT_EQ(stored(), 12);
  EXPECT_EQ(flip(resp_client(cluster_->socket(0))).call({"WAIT", "1", "0"}), "(integer) 1")
      << "the replica has the damaged ones";
  cut_off(1);
  flip(resp_client(cluster_->socket(0)));
  for (size_t i = 0; i < readers.size(); ++i) {
    const remote_machine& b = *readers[i];
    ASSERT_TRUE(finds_all(b, all));
    loads_all(b, all);
    auto shown = status(b);
    EXPECT_EQ(shown["replica_reads"]["damaged"], 6) << shown;
    EXPECT_EQ(shown["replica_reads"]["read"], 0) << shown;
    EXPECT_EQ(shown["replica_reads"]["asked_primary"], 0) << shown;
    EXPECT_TRUE(shown["misses"].empty()) << shown;
    const std::string notice = shown["notice"];
    EXPECT_NE(notice.find("6 objects were not as they were written at a replica"), std::string::npos)
        << notice;
    EXPECT_NE(notice.find(", at " + cluster_->address(1) + ": "), std::string::npos) << notice;
    EXPECT_EQ(test::number_behind(
                  test::scrape(ports[i]),
                  "terrace_remote_replica_reads_total{group=\"default\",tier=\"remote\",answer=\"damaged\"}"),
              6);
    EXPECT_NE(terrace(b.daemon, {"remote", "status"})
                  .out.find("; 0 objects from replicas, 6 from their primaries instead (6 damaged)"),
              std::string::npos);
    EXPECT_EQ(stored(), 12) << "the primary's values are right, and stay";
    for (const auto& each : all)
      chill(b, each);
    loads_all(b, all);
  }
}

// ---- replicas that end ----

TEST_F(RemoteReplicas, AReplicaThatEndsIsReadAgainOnceItIsBack) {
  start_listed();
  auto a = machine(), b = machine();
  auto all = singles(1, 12), later = singles(100, 24);
  store_all(*a, all);
  store_all(*a, later);
  await_copies();
  ASSERT_TRUE(finds_all(*b, all));
  ASSERT_TRUE(finds_all(*b, later));
  await_replicas(*b);
  const std::string address = cluster_->address(3);
  cluster_->kill(3);
  ASSERT_TRUE(b->daemon.await_log("does not read from a replica: the node at " + address));
  EXPECT_EQ(status(*b)["state"], "ready");
  loads_all(*b, all);
  EXPECT_TRUE(status(*b)["misses"].empty());
  EXPECT_FALSE(b->daemon.has_logged("is out of service"));
  cluster_->start(3);
  ASSERT_TRUE(eventually([&] { return state_of(*b, address, true) == "ready"; }));
  ASSERT_TRUE(eventually([&] {
    return cluster_->ask(3, {"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
  }));
  loads_all(*b, later);
  EXPECT_GT(gets(3), 0);
}

TEST_F(RemoteReplicas, WhatAReplicaThatStandsStillWasAskedForIsReadFromItsPrimary) {
  start_listed();
  auto a = machine();
  remote_machine b({.more = cluster_section("demotion = \"write_through\"\n", "100ms")});
  b.await_store();
  auto all = singles(1, 12);
  store_all(*a, all);
  await_copies();
  ASSERT_TRUE(finds_all(b, all));
  await_replicas(b);
  for (size_t i = 0; i < redis_cluster::primaries; ++i)
    ASSERT_TRUE(test::suspend(cluster_->pid(replica_of(i))));
  loads_all(b, all);
  EXPECT_TRUE(b.daemon.await_log("it does not answer"));
  EXPECT_TRUE(status(b)["misses"].empty()) << status(b);
  EXPECT_EQ(status(b)["state"], "ready");
  for (size_t i = 0; i < redis_cluster::primaries; ++i)
    ASSERT_EQ(::kill(cluster_->pid(replica_of(i)), SIGCONT), 0);
  await_replicas(b);
}

TEST_F(RemoteReplicas, AFailoverUnderLoadChangesTheRolesOfNodes) {
  start_listed();
  auto a = machine(), b = machine();
  auto all = singles(1, 24), later = singles(100, 12);
  store_all(*a, all);
  await_copies();
  ASSERT_TRUE(finds_all(*b, all));
  await_replicas(*b);
  const size_t lost = 0, promoted = replica_of(lost);
  const std::string address = cluster_->address(promoted), former = cluster_->address(lost);
  std::atomic<bool> changing{true};
  std::thread loads([&] {
    while (changing) // every byte that is delivered is checked
      loads_whatever_is_there(*b, all);
  });
  cluster_->kill(lost); // by this thread: a server ends with the thread that has started it
  EXPECT_TRUE(eventually([&] { return state_of(*a, address, false) == "ready"; }));
  cluster_->start(lost);
  EXPECT_TRUE(eventually([&] { return state_of(*a, former, true) == "ready"; }));
  changing = false;
  loads.join();
  EXPECT_TRUE(eventually([&] {
    return state_of(*b, address, false) == "ready" && state_of(*b, former, true) == "ready";
  })) << status(*b);
  EXPECT_EQ(status(*b)["nodes"].size(), 6U) << status(*b);
  EXPECT_TRUE(finds_all(*b, all));
  store_all(*a, later);
  EXPECT_TRUE(finds_all(*b, later));
  loads_all(*b, later);
  EXPECT_TRUE(eventually([&] { return connections(promoted) == 6; })) << "three of each machine";
  EXPECT_TRUE(eventually([&] { return connections(lost) == 2; })) << "one of each";
}

TEST_F(RemoteReplicas, WhatAReplicaWasAskedForBeforeItWasPromotedIsRead) {
  cluster_.emplace(redis_cluster::shape{.replicas = redis_cluster::primaries,
                                        .options = {"--repl-ping-replica-period", "1"},
                                        .node_timeout_ms = "60000"}); // nobody else is promoted
  await_lists();
  remote_machine b({.more = cluster_section()});
  b.await_store();
  await_replicas(b);
  const auto lacks = [this](size_t node, const char* what) { return cluster_->keys(node, what).empty(); };
  auto all = singles(1, 12);
  store_all(b, all);
  await_copies();
  size_t demoted = 0; // two tokens are at two nodes at most
  while (!lacks(demoted, "terrace/t1/epoch/*"))
    ++demoted;
  const size_t promoted = replica_of(demoted);
  ASSERT_LT(demoted, redis_cluster::primaries);
  const std::vector<digest>* wanted = nullptr; // it is there
  for (const auto& each : all) {
    const int64_t before = gets(promoted);
    chill(b, each);
    EXPECT_EQ(b.client->load_and_check(each), 1U);
    if (gets(promoted) != before)
      wanted = &each;
  }
  ASSERT_NE(wanted, nullptr);
  chill(b, *wanted);
  const std::string connection = port_of_reader(promoted);
  ASSERT_EQ(cluster_->ask(promoted, {"CLUSTER", "FAILOVER", "TAKEOVER"}), "OK");
  ASSERT_TRUE(eventually([&] {
    return cluster_->ask(demoted, {"INFO", "replication"}).find("role:slave") != std::string::npos;
  }));
  ASSERT_TRUE(test::suspend(cluster_->pid(promoted)));
  uint32_t loaded = 0;
  std::thread load([&] { loaded = b.client->load_and_check(*wanted); });
  EXPECT_TRUE(eventually([&] { return has_unread_bytes(cluster_->address(promoted), connection); }));
  tester other(b.daemon.socket());
  EXPECT_TRUE(
      eventually([&] { // what is asked of the former primary is redirected, and the slots are told anew
        for (const auto& unknown : singles(500, 12))
          EXPECT_EQ(other.lookup(unknown).found_chunks, 0U);
        return state_of(b, cluster_->address(promoted), false) != "unknown";
      }));
  ASSERT_EQ(::kill(cluster_->pid(promoted), SIGCONT), 0);
  load.join();
  EXPECT_EQ(loaded, 1U);
  EXPECT_TRUE(status(b)["misses"].empty()) << status(b);
  EXPECT_TRUE(eventually([&] { return state_of(b, cluster_->address(promoted), false) == "ready"; }));
  EXPECT_TRUE(eventually([&] { return state_of(b, cluster_->address(demoted), true) == "ready"; }));
  EXPECT_TRUE(eventually([&] { return connections(promoted) == 3; })) << "that of the replica has ended";
}

TEST_F(RemoteReplicas, ReadsNeedNoMoreRightsThanDocumented) {
  const std::vector<std::string> rights{"--user",         "kv",      "on",      ">hunter2", "~terrace/*",
                                        "+hello",         "+auth",   "+exists", "+get",     "+set",
                                        "+unlink",        "+client", "+info",   "+scan",    "+strlen",
                                        "+cluster|slots", "+asking"};
  auto with_readonly = rights;
  with_readonly.emplace_back("+readonly");
  write_file(folder_ / "password", "hunter2\nkv\n");
  ASSERT_EQ(::chmod((folder_ / "password").c_str(), 0600), 0);
  const std::string password = "password_file = \"" + folder_.path() + "/password\"\n";
  start_listed(with_readonly);
  auto a = machine(test_space(), password);
  auto all = singles(1, 6), later = singles(100, 6);
  store_all(*a, all);
  await_copies();
  auto b = machine(test_space(), password);
  await_replicas(*b);
  ASSERT_TRUE(finds_all(*b, all));
  loads_all(*b, all);
  EXPECT_GE(gets_of_replicas(), 6);
  for (size_t i = 0; i < cluster_->size(); ++i)
    EXPECT_EQ(cluster_->ask(i, {"ACL", "SETUSER", "kv", "-readonly"}), "OK");
  store_all(*a, later);
  remote_machine c({.more = cluster_section("demotion = \"write_through\"\n" + password)});
  ASSERT_TRUE(c.daemon.await_log("with reads=replicas READONLY"));
  ASSERT_TRUE(finds_all(c, later));
  loads_all(c, later);
}

// ---- with TLS ----

class RemoteReplicasTls : public RemoteReplicas {
 protected:
  void SetUp() override {
    RemoteReplicas::SetUp();
    if (IsSkipped())
      return;
    if (!test::certificate_authority::installed())
      GTEST_SKIP() << "no openssl on this machine; install the package `openssl`";
    authority_.emplace(folder_.path());
    scheme_ = "cluster+tls://";
    address_options_ = "?name=cache.test&reads=replicas";
    auto of_nodes = authority_->issue("nodes", "DNS:cache.test");
    start_pair({"--tls-cert-file", of_nodes.certificate, "--tls-key-file", of_nodes.key, "--tls-ca-cert-file",
                authority_->file(), "--tls-auth-clients", "no"},
               true);
  }
  std::string trust() const { return "tls_ca_file = \"" + authority_->file() + "\"\n"; }

  std::optional<test::certificate_authority> authority_;
};

TEST_F(RemoteReplicasTls, PayloadsAreReadFromReplicasThatHaveTheNameOfTheAddress) {
  auto a = machine(test_space(), trust()), b = machine(test_space(), trust());
  auto all = singles(1, 6);
  store_all(*a, all);
  await_copies();
  await_replicas(*b);
  ASSERT_TRUE(finds_all(*b, all));
  const int64_t of_primary = gets(0), of_replica = gets(1);
  loads_all(*b, all);
  EXPECT_EQ(gets(1) - of_replica, 6);
  EXPECT_EQ(gets(0), of_primary);
  EXPECT_TRUE(status(*b)["misses"].empty()) << status(*b);
}

TEST_F(RemoteReplicasTls, AReplicaWithAnotherNameIsNotRead) {
  auto other = authority_->issue("other", "DNS:other.test");
  EXPECT_EQ(
      cluster_->ask(1, {"CONFIG", "SET", "tls-cert-file", other.certificate, "tls-key-file", other.key}),
      "OK");
  remote_machine a({.more = cluster_section("demotion = \"write_through\"\n" + trust())});
  a.await_store();
  EXPECT_TRUE(a.daemon.await_log("does not read from a replica: the node at " + cluster_->address(1)));
  EXPECT_TRUE(a.daemon.await_log("the server's certificate is not for \"cache.test\""));
  auto all = singles(1, 6);
  store_all(a, all);
  for (const auto& each : all)
    chill(a, each);
  loads_all(a, all);
  EXPECT_EQ(status(a)["state"], "ready");
  EXPECT_TRUE(status(a)["misses"].empty()) << status(a);
}

} // namespace
} // namespace terrace::e2e
