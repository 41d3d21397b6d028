// A trust group with two remote tiers: a small fast store, and one behind it that keeps more.
#include "remote_fixture.hpp"

#include "tests/support/scrape.hpp"

#include <filesystem>

namespace terrace::e2e {
namespace {

constexpr uint32_t on_second = 1U << static_cast<unsigned>(tier_kind::remote2);

class SeveralStores : public RemoteStores {
 protected:
  void SetUp() override {
    RemoteStores::SetUp();
    std::filesystem::create_directory(folder_ / "second");
  }

  /// The store behind keeps what it is told over its own end.
  void start_second() {
    second_.emplace((folder_ / "second").string(),
                    std::vector<std::string>{"--appendonly", "yes", "--appendfsync", "always"});
  }
  void stop_second() {
    second_.reset();
    std::filesystem::remove(folder_ / "second" / "redis.sock");
  }
  std::string second_section(const std::string& more = "demotion = \"write_through\"\n") const {
    return "[[remote]]\naddress = \"" + (folder_ / "second").string() + "/redis.sock\"\nrealm_key_file = \"" +
           key_file() + "\"\nprefix = \"behind/\"\nlookup_budget = \"1s\"\n" + more;
  }
  std::unique_ptr<remote_machine> machine(const std::string& sections, daemon_options with = {}) const {
    with.more = sections;
    auto made = std::make_unique<remote_machine>(with);
    const auto told = answer_of(made->daemon, {"remote", "status"});
    for (const nlohmann::json& each : told["remotes"])
      EXPECT_TRUE(eventually([&] { return made->client->tier(each["tier"]).state == "ready"; }));
    return made;
  }
  void start_two() {
    start_store();
    start_second();
    a_ = machine(section() + second_section());
    b_ = machine(section() + second_section());
  }
  void store_in_both(const std::vector<digest>& chain) const {
    EXPECT_EQ(a_->client->store(chain), chain.size());
    ASSERT_TRUE(a_->finds_all(chain, on_remote) && a_->finds_all(chain, on_second));
  }

  std::optional<test::redis_process> second_;
  std::unique_ptr<remote_machine> a_, b_;
};

TEST_F(SeveralStores, WhatIsStoredGoesToBoth) {
  start_two();
  const auto chain = chain_of(1, 4);
  store_in_both(chain);
  EXPECT_EQ(b_->client->lookup(chain, false, 0).tiers, std::vector<tier_kind>(4, tier_kind::remote))
      << "the second one is asked for nothing that the first one has";
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
}

TEST_F(SeveralStores, ALookupGoesOnInTheSecondWhereTheFirstEnds) {
  start_store();
  start_second();
  const auto chain = chain_of(1, 6);
  a_ = machine(section());
  auto behind = std::make_unique<remote_machine>(daemon_options{.more = second_section()});
  behind->await_store();
  ASSERT_EQ(a_->client->store({chain.begin(), chain.begin() + 3}), 3U);
  ASSERT_TRUE(a_->finds_all({chain.begin(), chain.begin() + 3}, on_remote));
  ASSERT_EQ(behind->client->store(chain), 6U);
  ASSERT_TRUE(behind->finds_all(chain, on_remote));
  b_ = machine(section() + second_section());
  const auto found = b_->client->lookup(chain, false, 0);
  ASSERT_EQ(found.found_chunks, 6U);
  EXPECT_EQ(found.tiers,
            (std::vector<tier_kind>{tier_kind::remote, tier_kind::remote, tier_kind::remote,
                                    tier_kind::remote2, tier_kind::remote2, tier_kind::remote2}));
  EXPECT_EQ(b_->client->load_and_check(chain), 6U) << "one load reads both";
  chill(*b_, chain);
  EXPECT_EQ(b_->client->lookup(chain, true, 0).brought_chunks, 6U) << "so does a lookup under a lease";
}

TEST_F(SeveralStores, ALeaseBringsWhatEitherHas) {
  start_two();
  const auto chain = chain_of(1, 4);
  store_in_both(chain);
  const auto found = b_->client->lookup(chain, true, on_second);
  EXPECT_EQ(found.found_chunks, 4U);
  EXPECT_EQ(found.tiers, std::vector<tier_kind>(4, tier_kind::host)) << "a lease promises nothing else";
}

TEST_F(SeveralStores, AKilledFirstLeavesTheSecond) {
  start_two();
  const auto chain = chain_of(1, 4);
  store_in_both(chain);
  ASSERT_EQ(b_->found(chain), 4U);
  stop_store();
  ASSERT_TRUE(b_->daemon.await_log("the remote tier of group default is out of service"));
  EXPECT_TRUE(b_->finds_all(chain));
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
  EXPECT_EQ(b_->client->tier("remote2").state, "ready");
}

TEST_F(SeveralStores, AKilledSecondLeavesTheFirst) {
  start_two();
  const auto chain = chain_of(1, 4);
  store_in_both(chain);
  stop_second();
  ASSERT_TRUE(b_->daemon.await_log("the second remote tier of group default is out of service"));
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
  EXPECT_EQ(b_->client->tier("remote").state, "ready");
}

TEST_F(SeveralStores, AClearReachesBoth) {
  start_two();
  const auto chain = chain_of(1, 4);
  store_in_both(chain);
  ASSERT_EQ(b_->client->load_and_check(chain), 4U);
  auto cleared = (*a_->client)->admin().clear(&a_->client->space(), patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
  EXPECT_TRUE(b_->finds_none(chain));
  EXPECT_EQ(b_->found(chain, on_second), 0U);
  stop_store();
  ASSERT_TRUE(b_->daemon.await_log("the remote tier of group default is out of service"));
  EXPECT_EQ(b_->found(chain), 0U) << "what the second one had is cleared there, too";
}

TEST_F(SeveralStores, AClearWaitsForTheOneThatIsAway) {
  start_store();
  start_second();
  a_ = machine(section() + second_section(), {.disk_bytes = 64 * mebibyte});
  const auto chain = chain_of(1, 4);
  store_in_both(chain);
  stop_second();
  ASSERT_TRUE(a_->daemon.await_log("the second remote tier of group default is out of service"));
  auto cleared = (*a_->client)->admin().clear(&a_->client->space(), patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
  a_->client.reset();
  EXPECT_EQ(a_->daemon.terminate(), 0);
  a_->daemon.start();
  a_->connect();
  ASSERT_TRUE(eventually([&] { return a_->client->tier("remote").state == "ready"; }));
  EXPECT_EQ(a_->found(chain), 0U) << "the first one has heard of it, and the second one has not";
  start_second();
  ASSERT_TRUE(eventually([&] { return a_->client->tier("remote2").state == "ready"; }));
  EXPECT_TRUE(a_->finds_none(chain));
  b_ = machine(section() + second_section());
  EXPECT_TRUE(b_->finds_none(chain)) << "another machine finds nothing there either";
}

TEST_F(SeveralStores, AreToldApart) {
  start_store();
  start_second();
  const uint16_t port = test::free_port();
  a_ = machine(section() + second_section(), {.metrics = "127.0.0.1:" + std::to_string(port)});
  store_in_both(chain_of(1, 4));
  const auto remotes = answer_of(a_->daemon, {"remote", "status"})["remotes"];
  ASSERT_EQ(remotes.size(), 2U);
  EXPECT_EQ(remotes[0]["tier"], "remote");
  EXPECT_EQ(remotes[0]["prefix"], "terrace/");
  EXPECT_EQ(remotes[1]["tier"], "remote2");
  EXPECT_EQ(remotes[1]["prefix"], "behind/");
  for (const std::string tier : {"remote", "remote2"}) {
    EXPECT_EQ(
        test::number_behind(test::scrape(port),
                            "terrace_remote_written_objects_total{group=\"default\",tier=\"" + tier + "\"}"),
        4);
    EXPECT_EQ(test::number_behind(test::scrape(port),
                                  "terrace_tier_objects{group=\"default\",tier=\"" + tier + "\"}"),
              4);
  }
  const auto probed = answer_of(a_->daemon, {"remote", "probe", "--tier", "remote2"});
  EXPECT_EQ(probed["works"], true) << probed;
  EXPECT_NE(probed["address"].get<std::string>().find("/second/"), std::string::npos) << probed;
  const auto swept = answer_of(a_->daemon, {"remote", "sweep", "--tier", "remote2"});
  EXPECT_EQ(swept["current"], 4) << swept;
  const auto refused = terrace(a_->daemon, {"remote", "probe", "--tier", "remote3"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("has no remote tier of this name; it has remote, remote2"), std::string::npos)
      << refused.err;
}

} // namespace
} // namespace terrace::e2e
