// A remote tier whose server sentinels name: when the primary is gone and they have made its replica the primary, the daemon uses
// that one.
#include "remote_fixture.hpp"

#include "tests/support/scrape.hpp"

namespace terrace::e2e {
namespace {

class RemoteSentinels : public RemoteStores {
 protected:
  void SetUp() override {
    RemoteStores::SetUp();
    if (IsSkipped())
      return;
    primary_.emplace(first_.path(), at_port(ports_[0]));
    replica_.emplace(second_.path(), at_port(ports_[1], {"--replicaof", "127.0.0.1", text_of(ports_[0])}));
    ASSERT_TRUE(
        eventually([&] { return info(*replica_).find("master_link_status:up") != std::string::npos; }));
    start_sentinel();
    ASSERT_TRUE(eventually([&] { return info(*primary_).find("connected_slaves:1") != std::string::npos; }));
  }

  static std::string text_of(uint16_t port) { return std::to_string(port); }
  static std::vector<std::string> at_port(uint16_t port, std::vector<std::string> more = {}) {
    std::vector<std::string> options{
        "--port", text_of(port), "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0"};
    options.insert(options.end(), more.begin(), more.end());
    return options;
  }
  static std::string info(const test::redis_process& server) {
    return resp_client(server.socket()).call({"INFO", "replication"});
  }
  void start_sentinel() {
    sentinel_.reset();
    sentinel_.reset(
        new test::redis_process(test::redis_process::sentinel(third_.path(), ports_[2], "kv", ports_[0])));
  }
  /// Nobody listens at the first of the sentinels.
  std::string by_sentinels(const std::string& name = "kv") const {
    return "[[remote]]\naddress = \"sentinel://127.0.0.1:" + text_of(ports_[3]) +
           ",127.0.0.1:" + text_of(ports_[2]) + "/" + name + "\"\nrealm_key_file = \"" + key_file() +
           "\"\nlookup_budget = \"1s\"\ndemotion = \"write_through\"\n";
  }

  temporary_folder first_{"/tmp"}, second_{"/tmp"}, third_{"/tmp"};
  std::array<uint16_t, 4> ports_{test::free_port(), test::free_port(), test::free_port(), test::free_port()};
  std::optional<test::redis_process> primary_, replica_;
  std::unique_ptr<test::redis_process> sentinel_;
};

TEST_F(RemoteSentinels, ANewPrimaryIsUsed) {
  remote_machine machine({.more = by_sentinels()});
  machine.await_store();
  auto chain = chain_of(1, 4), later = chain_of(2, 4);
  EXPECT_EQ(machine.client->store(chain), 4U);
  ASSERT_TRUE(machine.finds_all(chain, on_remote));
  auto keys = [](const test::redis_process& server) { return resp_client(server.socket()).call({"DBSIZE"}); };
  ASSERT_TRUE(eventually([&] { return keys(*replica_) == keys(*primary_); }));
  primary_.reset();
  ASSERT_TRUE(machine.daemon.await_log("uses the server at 127.0.0.1:" + text_of(ports_[1])));
  machine.await_store();
  EXPECT_EQ(machine.found(chain, on_remote), 4U) << "the replica has them";
  EXPECT_EQ(machine.client->store(later), 4U);
  EXPECT_TRUE(machine.finds_all(later, on_remote)) << "and takes others";
}

TEST_F(RemoteSentinels, AServerThatBecomesAReplicaIsLeft) {
  remote_machine machine({.more = by_sentinels()});
  machine.await_store();
  ASSERT_TRUE(eventually([&] {
    return resp_client(ports_[2]).call({"SENTINEL", "FAILOVER", "kv"}) == "OK";
  })) << "a sentinel asks a primary for its replicas every ten seconds";
  ASSERT_TRUE(machine.daemon.await_log("uses the server at 127.0.0.1:" + text_of(ports_[1])));
  machine.await_store();
  EXPECT_EQ(machine.client->store(chain_of(1, 4)), 4U);
  EXPECT_TRUE(machine.finds_all(chain_of(1, 4), on_remote));
}

TEST_F(RemoteSentinels, ANameThatNobodyWatchesIsTold) {
  remote_machine machine({.more = by_sentinels("other")});
  ASSERT_TRUE(machine.daemon.await_log("no sentinel tells where it is"));
  EXPECT_TRUE(machine.daemon.await_log("it watches no primary of the name other: check the name"));
  EXPECT_EQ(machine.client->store(chain_of(1, 2)), 2U) << "the daemon serves without the tier";
}

TEST_F(RemoteSentinels, AProbeAsksThemWhereTheServerIs) {
  remote_machine machine({.more = by_sentinels()});
  machine.await_store();
  auto probed = answer_of(machine.daemon, {"remote", "probe"});
  EXPECT_EQ(probed["works"], true) << probed;
  EXPECT_EQ(probed["steps"][0]["step"], "127.0.0.1:" + text_of(ports_[3]) + " primary")
      << "nobody listens there";
  EXPECT_NE(probed["steps"][0]["failure"], "");
  EXPECT_EQ(probed["steps"][1]["step"], "127.0.0.1:" + text_of(ports_[2]) + " primary");
  EXPECT_EQ(probed["steps"][1]["failure"], "");
  EXPECT_EQ(probed["steps"][2]["step"], "connect");
}

/// The log and a probe say which scheme fits.
TEST_F(RemoteSentinels, AWrongSchemeTellsWhichOneFits) {
  const auto expect = [&](std::string address, const std::string& fits) {
    std::string text = by_sentinels();
    const auto begin = text.find("sentinel://");
    text.replace(begin, text.find('"', begin) - begin, address);
    remote_machine machine({.more = text});
    ASSERT_TRUE(machine.daemon.await_log(fits)) << address;
    auto probed = terrace(machine.daemon, {"remote", "probe"});
    EXPECT_EQ(probed.exit_code, 1);
    EXPECT_NE(probed.out.find(fits), std::string::npos) << probed.out;
  };
  const std::string server = "127.0.0.1:" + text_of(ports_[0]), sentinel = "127.0.0.1:" + text_of(ports_[2]);
  expect("sentinel://" + server + "/kv",
         "it is a server of its own, and no sentinel: write " + server + " as address");
  expect(sentinel, "it is a sentinel: write sentinel://" + sentinel + "/NAME as address");
  expect("cluster://" + sentinel, "it is a sentinel: write sentinel://" + sentinel + "/NAME as address");
}

TEST_F(RemoteSentinels, SentinelsThatComeLaterAreAsked) {
  sentinel_.reset();
  remote_machine machine({.more = by_sentinels()});
  ASSERT_TRUE(machine.daemon.await_log("no sentinel tells where it is"));
  start_sentinel();
  machine.await_store();
  EXPECT_EQ(machine.client->store(chain_of(1, 2)), 2U);
  EXPECT_TRUE(machine.finds_all(chain_of(1, 2), on_remote));
}

} // namespace
} // namespace terrace::e2e
