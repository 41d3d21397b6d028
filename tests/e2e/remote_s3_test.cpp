// A remote tier in a bucket of an S3 store: what one machine stored the others load, bit for bit, what fails costs misses only, and
// what is wrong is told with its fix. The store is one of ours, which fails as it is told. What it promises as other kinds do, and moto's
// server and Ceph's gateway with it, is in remote_contract_test.cpp.
#include "command_line.hpp"
#include "remote_fixture.hpp"

#include "tests/support/certificates.hpp"
#include "tests/support/s3_process.hpp"
#include "tests/support/scrape.hpp"

#include <algorithm>
#include <csignal>
#include <sstream>

namespace terrace::e2e {
namespace {

using test::s3_process;

class RemoteBucket : public ::testing::Test {
 protected:
  void SetUp() override {
    if (without_buckets())
      GTEST_SKIP() << "this build has no libcurl; install the package `libcurl4-openssl-dev`";
    secret_file("realm", std::string(32, 'k'));
    secret_file("keys", std::string(s3_process::secret_key) + "\n" + s3_process::access_key + "\n");
  }

  std::string file(const std::string& name) const { return folder_ / name; }
  void secret_file(const std::string& name, const std::string& text) const {
    write_file(file(name), text);
    ASSERT_EQ(::chmod(file(name).c_str(), 0600), 0);
  }
  /// By default lookups have enough time on a busy machine of a test.
  std::string section(const std::string& more = "", const std::string& scheme = "s3://",
                      const std::string& lookup_budget = "1s") const {
    return "[[remote]]\naddress = \"" + scheme + store_->place() + "\"\nrealm_key_file = \"" + file("realm") +
           "\"\npassword_file = \"" + file("keys") + "\"\nlookup_budget = \"" + lookup_budget +
           "\"\ndemotion = \"write_through\"\n" + more;
  }
  void start_store(const std::vector<std::string>& options = {}) {
    store_ = std::make_shared<s3_process>(options);
  }
  static std::unique_ptr<remote_machine> machine(const std::string& more) {
    auto made = std::make_unique<remote_machine>(daemon_options{.more = more});
    made->await_store();
    return made;
  }
  void start() {
    start_store();
    a_ = machine(section());
  }
  void start_two() {
    start();
    b_ = machine(section());
  }
  static void store(const remote_machine& at, const std::vector<digest>& chain) {
    EXPECT_EQ(at.client->store(chain), chain.size());
    ASSERT_TRUE(at.finds_all(chain, on_remote));
  }
  static void clear(const remote_machine& at) {
    auto cleared = (*at.client)->admin().clear(&at.client->space(), patiently());
    ASSERT_TRUE(cleared) << cleared.error().text;
  }
  std::vector<std::string> values() {
    std::vector<std::string> all;
    std::istringstream names(store_->tell("names"));
    for (std::string name; names >> name;)
      if (name.find("/t1/epoch/") == std::string::npos && !name.starts_with("terrace/t1/"))
        all.push_back(name);
    return all;
  }
  static std::string reason(const remote_machine& of) { return of.client->tier("remote").reason; }
  static std::string notice(const remote_machine& of) { return of.client->tier("remote").notice; }
  static bool serves(const remote_machine& of) { return of.client->tier("remote").state == "ready"; }

  temporary_folder folder_{"/tmp"};
  std::shared_ptr<s3_process> store_;
  std::unique_ptr<remote_machine> a_, b_;

 private:
  bool without_buckets() const {
    const std::string configuration = file("probe.toml");
    write_file(configuration, "[[remote]]\naddress = \"s3://127.0.0.1:1/bucket\"\n");
    const auto checked = test::run({test::program("TERRACED"), "--config", configuration, "--check"});
    return (checked.out + checked.err).find("libcurl") != std::string::npos;
  }
};

// ---- what is in the bucket ----

TEST_F(RemoteBucket, HasOneValueForEachObjectUnderTheDigitsOfItsDigest) {
  start();
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  auto names = values();
  ASSERT_EQ(names.size(), 4U);
  for (const digest& chunk : chain) {
    const std::string hex = to_hex(chunk);
    EXPECT_TRUE(std::ranges::any_of(names, [&](const std::string& name) {
      return name.starts_with("terrace/" + hex.substr(0, 2) + "/t1/") &&
             name.find(hex.substr(0, 16)) != std::string::npos;
    })) << hex;
  }
  auto shown = answer_of(a_->daemon, {"remote", "status"})["remotes"].at(0);
  EXPECT_EQ(shown["state"], "ready");
  EXPECT_EQ(shown["server"], "TestStore");
  EXPECT_EQ(shown["version"], "1.0");
  EXPECT_EQ(shown["tells_changes"], false);
  EXPECT_NE(shown["memory_refused"].get<std::string>().find("bucket"), std::string::npos) << shown;
  EXPECT_EQ(answer_of(a_->daemon, {"remote", "status"})["remotes"].at(0)["answers"], shown["answers"])
      << "the bucket was not asked";
}

TEST_F(RemoteBucket, AnObjectOfManyMebibytesIsFewValues) {
  start_store();
  a_ = machine(section() + resp_section(file("door.sock")));
  EXPECT_EQ(resp_client(file("door.sock")).call({"SET", "large", std::string(11 * mebibyte, 'v')}), "OK");
  ASSERT_TRUE(eventually([&] { return a_->client->tier("remote").objects == 1; }));
  EXPECT_EQ(values().size(), 2U);
}

TEST_F(RemoteBucket, ALookupAsksForFewObjectsOfALongPrompt) {
  start_two();
  const auto asked = [this] { return std::stoi(store_->tell("asked HEAD")); };
  auto chain = chain_of(1, 24);
  const std::vector<digest> begin(chain.begin(), chain.begin() + 12);
  store(*a_, begin);
  int before = asked();
  EXPECT_EQ(b_->found(chain), 12U);
  EXPECT_EQ(asked() - before, 6 + 7)
      << "the 1st, 2nd, 4th, 8th, 16th and 24th; and what is between the 8th and the 16th";
  EXPECT_EQ(b_->client->load_and_check(begin), 12U);
  before = asked();
  EXPECT_EQ(b_->client->store(chain), 12U);
  ASSERT_TRUE(b_->finds_all(chain, on_remote));
  EXPECT_EQ(asked(), before) << "what was missing is not asked for before it is written";
  ASSERT_TRUE(a_->finds_all(chain));
}

TEST_F(RemoteBucket, AHoleThatNoLookupHasAskedForIsAMiss) {
  start_two();
  auto chain = chain_of(1, 8);
  store(*a_, chain);
  const std::string hex =
      to_hex(chain[2]).substr(0, 16); // the first, second, fourth and eighth are asked for
  store_->fail("status-404-NoSuchKey", hex, 1);
  EXPECT_EQ(b_->found(chain), 8U);
  EXPECT_EQ(b_->client->load_and_check(chain), 2U);
  EXPECT_EQ(b_->found(chain), 2U);
}

TEST_F(RemoteBucket, AnOperatorsEvictionRemovesValues) {
  start();
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  auto gone = (*a_->client)
                  ->admin()
                  .evict({.in = a_->client->space(), .what = client::prefix::of_digests(chain)}, patiently());
  ASSERT_TRUE(gone) << gone.error().text;
  EXPECT_TRUE(eventually([&] { return values().empty(); }));
}

TEST_F(RemoteBucket, AnEvictionRemovesWhatIsBeingWritten) {
  start();
  store(*a_, chain_of(1, 1)); // the tokens are there
  auto chain = chain_of(2, 1);
  const auto count = [this](const std::string& method) { return std::stoi(store_->tell("count " + method)); };
  const int before = count("PUT");
  store_->fail("late", "PUT", 1'000'000);
  a_->client->store(chain);
  ASSERT_TRUE(eventually([&] { return count("PUT") == before + 1; }));
  const auto evict = [&](client::deadline until) {
    return (*a_->client)
        ->admin()
        .evict({.in = a_->client->space(), .what = client::prefix::of_digests(chain)}, until);
  };
  EXPECT_FALSE(evict(client::within(std::chrono::milliseconds(200))))
      << "a connection of its own would remove the value before it is there";
  EXPECT_EQ(count("DELETE"), 0);
  store_->fail("late", "PUT", 0);
  EXPECT_TRUE(evict(patiently()));
  EXPECT_EQ(values().size(), 1U);
}

TEST_F(RemoteBucket, WrongBytesAreNeverServed) {
  start_two();
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  store_->tell("change");
  EXPECT_EQ(b_->client->load_and_check(chain), 0U);
  EXPECT_NE(notice(*b_).find(" written; the last: "), std::string::npos) << notice(*b_);
  EXPECT_TRUE(eventually([&] { return values().size() < 4; })) << "and are removed";
}

// ---- conditions of writes ----

TEST_F(RemoteBucket, AStoreWithoutConditionsIsUsed) {
  start_store();
  store_->fail("status-501-NotImplemented", "PUT", 1);
  a_ = machine(section());
  store(*a_, chain_of(1, 2));
  a_->leave_host(chain_of(1, 2));
  EXPECT_EQ(a_->client->load_and_check(chain_of(1, 2)), 2U);
}

// ---- failures ----

TEST_F(RemoteBucket, ASweepOfAStoreThatRepeatsItsKeysEnds) {
  start_store();
  a_ = machine(section());
  store(*a_, chain_of(1, 4));
  clear(*a_);
  store_->fail("repeated", "GET", 1'000'000);
  auto swept = terrace(a_->daemon, {"remote", "sweep"});
  EXPECT_NE(swept.exit_code, 0);
  EXPECT_NE(swept.err.find("lists the same keys again"), std::string::npos) << swept.err;
  store_->fail("repeated", "GET", 0);
  EXPECT_EQ(answer_of(a_->daemon, {"remote", "sweep"})["removed"], 4);
}

TEST_F(RemoteBucket, AConnectionThatEndsInAValueCostsNothing) {
  start_two();
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  store_->fail("cut", "GET", 1);
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
}

TEST_F(RemoteBucket, AValueWhoseConnectionEndsAgainIsAMiss) {
  start_two();
  auto chain = chain_of(1, 1);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  store_->fail("cut", "GET", 2);
  EXPECT_EQ(b_->client->load_and_check(chain), 0U);
  EXPECT_TRUE(serves(*b_)) << reason(*b_);
  EXPECT_NE(notice(*b_).find("interrupted"), std::string::npos) << notice(*b_);
  EXPECT_TRUE(eventually([&] { return b_->client->load_and_check(chain) == 1; })) << "it is there still";
}

TEST_F(RemoteBucket, WhatAStoreRefusesForTheMomentCostsNothing) {
  start();
  const uint16_t port = test::free_port();
  b_ = std::make_unique<remote_machine>(
      daemon_options{.metrics = "127.0.0.1:" + std::to_string(port), .more = section()});
  b_->await_store();
  const auto retries = [port](const std::string& command) {
    return test::number_behind(test::scrape(port),
                               "terrace_remote_retries_total{group=\"default\",tier=\"remote\",command=\"" +
                                   command + "\"}");
  };
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  store_->fail("status-503-SlowDown", "VALUE", 4);
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
  EXPECT_EQ(retries("read"), 4);
  store_->fail("status-500-InternalError", "PUT", 2);
  store(*b_, chain_of(2, 4));
  EXPECT_EQ(retries("write"), 2);
  EXPECT_TRUE(serves(*b_)) << reason(*b_);
}

TEST_F(RemoteBucket, AStoreThatKeepsAskingForFewerRequestsIsLeftAndUsedAgain) {
  start_two();
  auto chain = chain_of(1, 4);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  store_->fail("status-503-SlowDown", "ANY", 1'000'000);
  EXPECT_EQ(b_->client->load_and_check(chain), 0U);
  ASSERT_TRUE(eventually([&] {
    b_->found(chain_of(9, 8)); // which asks for some of them
    return !serves(*b_);
  }));
  EXPECT_TRUE(b_->daemon.await_log("fewer requests"));
  store_->fail("status-503-SlowDown", "ANY", 0);
  b_->await_store();
  EXPECT_TRUE(eventually([&] { return b_->client->load_and_check(chain) == 4; }));
}

TEST_F(RemoteBucket, AStoreInTroubleIsLeftAndUsedAgain) {
  start_two();
  auto chain = chain_of(1, 8);
  store(*a_, chain);
  ASSERT_TRUE(b_->finds_all(chain));
  store_->fail("status-500-InternalError", "ANY", 1'000'000);
  EXPECT_EQ(b_->client->load_and_check(chain), 0U);
  ASSERT_TRUE(eventually([&] {
    b_->found(chain_of(9, 8)); // which asks for some of them
    return !serves(*b_);
  }));
  EXPECT_TRUE(b_->daemon.await_log("an error of its own"));
  store_->fail("status-500-InternalError", "ANY", 0);
  b_->await_store();
  EXPECT_TRUE(eventually([&] { return b_->client->load_and_check(chain) == 8; }));
}

TEST_F(RemoteBucket, AStoreThatEndsConnectionsIsLeftAndUsedAgain) {
  start();
  store(*a_, chain_of(1, 2));
  store_->fail("reset", "ANY", 1'000'000);
  a_->client->store(chain_of(2, 8));
  ASSERT_TRUE(eventually([&] { return !serves(*a_); }));
  store_->fail("reset", "ANY", 0);
  a_->await_store();
  store(*a_, chain_of(3, 2));
}

TEST_F(RemoteBucket, WithoutAStoreTheDaemonServes) {
  start_store();
  const std::string with = section();
  store_.reset();
  remote_machine alone({.more = with});
  EXPECT_TRUE(alone.daemon.await_log("it cannot be reached"));
  EXPECT_EQ(alone.client->store(chain_of(1, 2)), 2U);
  EXPECT_EQ(alone.client->load_and_check(chain_of(1, 2)), 2U);
  auto probed = terrace(alone.daemon, {"remote", "probe"});
  EXPECT_EQ(probed.exit_code, 1);
  EXPECT_NE(probed.out.find("check that the server runs"), std::string::npos) << probed.out;
  EXPECT_EQ(alone.daemon.terminate(), 0);
}

// ---- late answers ----

/// `b_` has read as many values as it takes to know that the next one is late.
class LateBucket : public RemoteBucket {
 protected:
  static constexpr size_t answers_min = 20;

  void SetUp() override {
    RemoteBucket::SetUp();
    if (IsSkipped())
      return;
    start();
    port_ = test::free_port();
    b_ = std::make_unique<remote_machine>(
        daemon_options{.metrics = "127.0.0.1:" + std::to_string(port_), .more = section()});
    b_->await_store();
    for (const auto& chain : {chain_of(1, answers_min), chain_})
      store(*a_, chain);
    ASSERT_TRUE(b_->finds_all(chain_of(1, answers_min)));
    ASSERT_EQ(b_->client->load_and_check(chain_of(1, answers_min)), answers_min);
    ASSERT_TRUE(b_->finds_all(chain_));
  }
  double count_of(const std::string& metric) const {
    return test::number_behind(test::scrape(port_), metric + "{group=\"default\",tier=\"remote\"}");
  }

  const std::vector<digest> chain_ = chain_of(2, 1);
  uint16_t port_ = 0;
};

TEST_F(LateBucket, AReadThatHangsIsServedByASecondRequest) {
  store_->tell("hold VALUE 1");
  EXPECT_EQ(b_->client->load_and_check(chain_), 1U);
  EXPECT_GE(count_of("terrace_remote_hedges_total"), 1);
  EXPECT_GE(count_of("terrace_remote_hedges_won_total"), 1);
  auto shown = answer_of(b_->daemon, {"remote", "status"})["remotes"].at(0);
  EXPECT_EQ(shown["hedges"]["sent"], count_of("terrace_remote_hedges_total")) << shown;
  EXPECT_EQ(shown["hedges"]["won"], count_of("terrace_remote_hedges_won_total")) << shown;
  const auto text = terrace(b_->daemon, {"remote", "status"}).out;
  EXPECT_NE(text.find("sent a second time, "), std::string::npos) << text;
  store_->tell("release");
  EXPECT_TRUE(serves(*b_)) << reason(*b_);
  EXPECT_EQ(b_->client->load_and_check(chain_), 1U);
  EXPECT_EQ(b_->daemon.terminate(), 0);
}

TEST_F(LateBucket, WrongBytesOfASecondRequestAreAMiss) {
  store_->tell("hold VALUE 1");
  store_->fail("wrong", "VALUE", 1);
  EXPECT_EQ(b_->client->load_and_check(chain_), 0U);
  EXPECT_NE(notice(*b_).find(" written; the last: "), std::string::npos) << notice(*b_);
  store_->tell("release");
  EXPECT_TRUE(serves(*b_)) << reason(*b_);
}

TEST_F(LateBucket, AReadOfWhichBothRequestsHangIsAMiss) {
  store_->tell("hold VALUE 2");
  EXPECT_EQ(b_->client->load_and_check(chain_), 0U) << "and the load ends";
  EXPECT_GE(count_of("terrace_remote_hedges_total"), 1);
  EXPECT_EQ(b_->daemon.terminate(), 0);
  store_->tell("release");
}

// ---- mistakes of a configuration ----

TEST_F(RemoteBucket, AMissingBucketIsToldAndUsedOnceItIsThere) {
  start_store();
  store_->tell("bucket other");
  remote_machine early({.more = section()});
  EXPECT_TRUE(early.daemon.await_log("the bucket does not exist: create it"));
  auto probed = terrace(early.daemon, {"remote", "probe"});
  EXPECT_EQ(probed.exit_code, 1);
  EXPECT_NE(probed.out.find("the bucket does not exist"), std::string::npos) << probed.out;
  store_->tell(std::string("bucket ") + s3_process::bucket);
  early.await_store();
  store(early, chain_of(1, 2));
}

TEST_F(RemoteBucket, WrongKeysAreToldAndNewOnesUsed) {
  start_store();
  store_->tell("key AKTERRACE another");
  remote_machine early({.more = section()});
  EXPECT_TRUE(early.daemon.await_log("check the first line of password_file"));
  EXPECT_FALSE(early.daemon.has_logged(s3_process::secret_key));
  store_->tell("key AKOTHER another");
  EXPECT_TRUE(early.daemon.await_log("check the second line of password_file"));
  secret_file("keys", "another\nAKOTHER\n");
  early.daemon.signal(SIGHUP);
  early.await_store();
  store(early, chain_of(1, 2));
}

TEST_F(RemoteBucket, KeysThatAreTakenBackWhileItServesAreTold) {
  start();
  store(*a_, chain_of(1, 2));
  store_->tell("key AKOTHER another");
  a_->client->store(chain_of(2, 2));
  EXPECT_TRUE(a_->daemon.await_log("check the second line of password_file"));
  ASSERT_TRUE(eventually([&] { return !serves(*a_); }));
}

TEST_F(RemoteBucket, AMissingRightIsTold) {
  start_store();
  store_->fail("status-403-AccessDenied", "PUT", 1'000'000);
  a_ = machine(section());
  a_->client->store(chain_of(1, 2));
  ASSERT_TRUE(eventually([&] { return notice(*a_).find("PutObject") != std::string::npos; })) << notice(*a_);
  auto probed = terrace(a_->daemon, {"remote", "probe"});
  EXPECT_EQ(probed.exit_code, 1);
  EXPECT_NE(probed.out.find("PutObject"), std::string::npos) << probed.out;
}

TEST_F(RemoteBucket, AFileWithoutTheAccessKeyIsRefused) {
  start_store();
  secret_file("keys", "secret\n");
  write_file(file("daemon.toml"), section());
  auto checked = test::run({test::program("TERRACED"), "--config", file("daemon.toml"), "--check"});
  EXPECT_NE(checked.exit_code, 0);
  EXPECT_NE((checked.out + checked.err).find("expected the access key in its second line"), std::string::npos)
      << checked.out << checked.err;
}

// ---- TLS ----

TEST_F(RemoteBucket, SpeaksTls) {
  if (!test::certificate_authority::installed())
    GTEST_SKIP() << "no openssl on this machine; install the package `openssl`";
  test::certificate_authority authority(folder_.path());
  auto server = authority.issue("server", "IP:127.0.0.1");
  write_file(file("server.pem"), read_file(server.certificate) + read_file(server.key));
  start_store({"--tls", file("server.pem")});
  remote_machine stranger({.more = section("", "s3+tls://")});
  EXPECT_TRUE(stranger.daemon.await_log("tls_ca_file"));
  a_ = machine(section("tls_ca_file = \"" + authority.file() + "\"\n", "s3+tls://"));
  store(*a_, chain_of(1, 4));
  a_->leave_host(chain_of(1, 4));
  EXPECT_EQ(a_->client->load_and_check(chain_of(1, 4)), 4U);
  auto probed = answer_of(a_->daemon, {"remote", "probe"});
  EXPECT_EQ(probed["works"], true) << probed;
}

} // namespace
} // namespace terrace::e2e
