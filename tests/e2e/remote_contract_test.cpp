// What every kind of remote store has to keep, and what no store may do to a daemon: each promise is one test of all kinds. What is
// special to a kind is in tests of its own (remote_*_test.cpp).
#include "contract_buckets.hpp"
#include "resp_door.hpp"

#include <map>

namespace terrace::e2e::contract {
namespace {

using ability = any_store::ability;
using having = any_store::having;

struct kind {
  const char* name;
  std::string (*missing)(); ///< what has to be installed for it; empty: nothing
  std::shared_ptr<any_store> (*make)();
  bool shared = false; ///< it starts within seconds, so one serves all tests
};
void PrintTo(const kind& each, std::ostream* to) { *to << each.name; }

template <class Store>
std::shared_ptr<any_store> one() {
  return std::make_shared<Store>();
}
template <others_bucket::made_by Whom>
std::shared_ptr<any_store> one_of_others() {
  return std::make_shared<others_bucket>(Whom);
}

std::string nothing() { return {}; }
std::string of_servers() {
  return test::redis_process::installed() ? "" : "no redis-server; install the package `redis-server`";
}
std::string of_tls() {
  return test::certificate_authority::installed() ? of_servers()
                                                  : "no openssl; install the package `openssl`";
}
std::string of_buckets() {
  const temporary_folder folder("/tmp");
  write_file(folder / "probe.toml", "[[remote]]\naddress = \"s3://127.0.0.1:1/bucket\"\n");
  const auto checked = run({program("TERRACED"), "--config", folder / "probe.toml", "--check"});
  return (checked.out + checked.err).find("libcurl") == std::string::npos
             ? ""
             : "no libcurl in this build; install the package `libcurl4-openssl-dev`";
}
std::string of_moto() {
  return test::s3_process::has_moto() ? of_buckets()
                                      : "no moto for Python; it is in the package moto[s3,server] of PyPI";
}
std::string of_ceph() {
  const std::string packages = test::s3_process::packages_for_radosgw();
  return packages.empty() ? of_buckets() : "no Ceph; install the packages `" + packages + "`";
}

std::vector<kind> honest_kinds() {
  return {{"server", of_servers, one<single_server>},
          {"sentinels", of_servers, one<sentinel_server>},
          {"cluster", of_servers, one<three_primaries>, true},
          {"tls", of_tls, one<tls_server>},
          {"bucket", of_buckets, one<bucket>},
          {"moto", of_moto, one_of_others<others_bucket::made_by::moto>, true},
          {"radosgw", of_ceph, one_of_others<others_bucket::made_by::ceph>, true},
          {"fs", nothing, one<shared_folder>}};
}
std::vector<kind> all_kinds() {
  auto all = honest_kinds();
  all.push_back({"lying_bucket", of_buckets, one<lying_bucket>});
  all.push_back({"lying_plugin", nothing, one<lying_plugin>});
  return all;
}

class RemoteContract : public ::testing::TestWithParam<kind> {
 protected:
  void SetUp() override {
    static std::map<std::string, std::string> missing;
    auto known = missing.find(GetParam().name);
    if (known == missing.end())
      known = missing.emplace(GetParam().name, GetParam().missing()).first;
    if (!known->second.empty())
      GTEST_SKIP() << "there is " << known->second;
    auto& kept = shared()[GetParam().name];
    store_ = kept ? kept : GetParam().make();
    if (GetParam().shared)
      kept = store_;
    static int tests = 0;
    prefix_ = "test" + std::to_string(++tests) + "/";
    store_->use(prefix_);
    write_file(folder_ / "realm", std::string(32, 'k'));
    ASSERT_EQ(::chmod((folder_ / "realm").c_str(), 0600), 0);
  }
  void TearDown() override {
    a_.reset();
    b_.reset();
    if (HasFailure())
      shared().erase(GetParam().name);
  }

  bool lacks(ability which) const { return !store_->lacks(which).empty(); }

  // ---- machines ----

  /// By default lookups have enough time on a busy machine of a test.
  std::string section(const std::string& more = "", const std::string& lookup_budget = "1s") const {
    return "[[remote]]\naddress = \"" + store_->address() + "\"\n" + store_->credentials() +
           "realm_key_file = \"" + (folder_ / "realm").string() + "\"\nlookup_budget = \"" + lookup_budget +
           "\"\ndemotion = \"write_through\"\nprefix = \"" + prefix_ + "\"\n" + more;
  }
  std::unique_ptr<remote_machine> machine(daemon_options with = {}) const {
    if (with.more.empty())
      with.more = section();
    auto made = std::make_unique<remote_machine>(with);
    await_store(*made);
    return made;
  }
  void start_two() {
    a_ = machine();
    b_ = machine();
  }
  /// For stores that do not answer: clients do not wait for them as long as those of other tests do.
  void start_two_impatient() {
    a_ = machine({.more = section("", "30ms")});
    b_ = machine({.more = section("", "30ms")});
  }
  /// All of it, if it has several nodes.
  static void await_store(const remote_machine& at) {
    at.await_store();
    ASSERT_TRUE(eventually([&] {
      const auto nodes = store_status(at).value("nodes", nlohmann::json::array());
      return std::ranges::all_of(nodes, [](const nlohmann::json& each) { return each["state"] == "ready"; });
    }));
  }
  void await_store() const {
    await_store(*a_);
    await_store(*b_);
  }
  /// The machine has noticed that the store is away.
  void await_loss(const remote_machine& at) {
    ASSERT_TRUE(eventually([&] {
      at.found(chain_of(++unknown_, 8)); // which asks it
      return at.client->tier("remote").state != "ready";
    }));
  }
  /// A machine that is not told reads the token for a lookup that asks the store, 5 seconds after it last did.
  bool hears_of_clear(const remote_machine& at, const std::vector<digest>& chain, uint32_t tiers = 0) {
    return eventually([&] {
      at.found(chain_of(++unknown_, 1));
      return at.found(chain, tiers) == 0;
    });
  }

  static void store(const remote_machine& at, const std::vector<digest>& chain) {
    EXPECT_EQ(at.client->store(chain), chain.size());
    ASSERT_TRUE(at.finds_all(chain, on_remote));
  }
  void store_and_share(const std::vector<digest>& chain) {
    store(*a_, chain);
    ASSERT_TRUE(b_->finds_all(chain));
  }
  void shares(const std::vector<digest>& chain) {
    store_and_share(chain);
    EXPECT_EQ(b_->client->load_and_check(chain), chain.size());
  }
  static void clear(const remote_machine& at, bool everything = false) {
    auto cleared = (*at.client)->admin().clear(everything ? nullptr : &at.client->space(), patiently());
    ASSERT_TRUE(cleared) << cleared.error().text;
  }
  /// The first machine has the chain in host memory, and the store has lost it: a load offers it again.
  void is_written_again(const std::vector<digest>& chain) const {
    EXPECT_TRUE(eventually([&] {
      return a_->client->load_and_check(chain) == chain.size() && b_->found(chain) == chain.size();
    }));
    EXPECT_EQ(b_->client->load_and_check(chain), chain.size());
  }
  bool eventually_loads(const remote_machine& at, const std::vector<digest>& chain) const {
    return eventually([&] { return at.client->load_and_check(chain) == chain.size(); });
  }

  std::shared_ptr<any_store> store_;
  std::unique_ptr<remote_machine> a_, b_;
  const std::vector<digest> chain_ = chain_of(1, 4), other_ = chain_of(2, 4);

 private:
  static std::map<std::string, std::shared_ptr<any_store>>& shared() {
    static std::map<std::string, std::shared_ptr<any_store>> all;
    return all;
  }

  temporary_folder folder_{"/tmp"};
  std::string prefix_;
  uint64_t unknown_ = 1'000'000;
};

const auto name_of = [](const auto& of) { return std::string(of.param.name); };
INSTANTIATE_TEST_SUITE_P(Kinds, RemoteContract, ::testing::ValuesIn(honest_kinds()), name_of);

/// These break their promises as well as they can.
class RemoteContractFaults : public RemoteContract {};
INSTANTIATE_TEST_SUITE_P(Kinds, RemoteContractFaults, ::testing::ValuesIn(all_kinds()), name_of);

// ---- what is shared ----

TEST_P(RemoteContractFaults, WhatOneMachineStoredAnotherLoadsBitForBit) {
  start_two();
  store_and_share(chain_);
  EXPECT_EQ(b_->client->lookup(chain_).tiers, std::vector<tier_kind>(4, tier_kind::remote));
  EXPECT_EQ(b_->client->load_and_check(chain_), 4U);
  EXPECT_EQ(b_->client->lookup(chain_).tiers, std::vector<tier_kind>(4, tier_kind::host));
  EXPECT_EQ(b_->client->tier("remote").bytes_read, 4 * object_bytes);
  EXPECT_EQ(b_->client->tier("remote").bytes_written, 0U) << "what is there is not written again";
  EXPECT_EQ(b_->daemon.terminate(), 0);
}

TEST_P(RemoteContract, WhatHostMemoryEvictedIsFoundAndLoadedAndInHostMemoryThen) {
  a_ = machine();
  store(*a_, chain_);
  a_->leave_host(chain_);
  EXPECT_EQ(a_->client->lookup(chain_).tiers, std::vector<tier_kind>(4, tier_kind::remote));
  EXPECT_EQ(a_->client->load_and_check(chain_), 4U);
  EXPECT_EQ(a_->client->lookup(chain_).tiers, std::vector<tier_kind>(4, tier_kind::host)) << "promoted";
  EXPECT_EQ(a_->client->tier("remote").bytes_read, 4 * object_bytes);
}

TEST_P(RemoteContract, EncryptedValuesAreSharedByThoseWhoHaveEncrypt) {
  a_ = machine({.more = section("encrypt = true\n")});
  b_ = machine({.more = section("encrypt = true\n")});
  const auto plain = machine();
  shares(chain_);
  EXPECT_EQ(plain->found(chain_), 0U) << "another realm";
  store(*plain, other_);
  EXPECT_EQ(b_->found(other_), 0U);
  clear(*plain);
  chill(*b_, chain_);
  EXPECT_EQ(b_->client->load_and_check(chain_), 4U) << "nor are clears shared";
}

TEST_P(RemoteContract, AnObjectOfManyPartsComesBack) {
  const temporary_folder folder("/tmp");
  a_ = machine({.more = section() + resp_section(folder / "door.sock")});
  const std::string large = value_of(11 * mebibyte + 77, 1);
  resp_client redis(folder / "door.sock");
  EXPECT_EQ(redis.call({"SET", "large", large}), "OK");
  ASSERT_TRUE(eventually([&] { return a_->client->tier("remote").objects == 1; }));
  occupy(*a_->client, 100, objects_in(remote_host_memory) - 1); // which leaves no room for it
  EXPECT_EQ(leased_objects(*a_->client, 0), 0U);
  EXPECT_TRUE(redis.call({"GET", "large"}) == large);
  EXPECT_GE(a_->client->tier("remote").bytes_read, large.size());
}

// ---- clears ----

TEST_P(RemoteContract, AClearReachesTheOtherMachine) {
  a_ = machine({.disk_bytes = 64 * mebibyte});
  b_ = machine();
  ASSERT_TRUE(a_->daemon.await_log("joined"));
  shares(chain_);
  ASSERT_TRUE(a_->finds_all(chain_, on_disk));
  clear(*b_);
  EXPECT_EQ(b_->found(chain_), 0U);
  EXPECT_TRUE(hears_of_clear(*a_, chain_)) << "nor do host memory and disk have it";
  EXPECT_TRUE(a_->daemon.await_log("was cleared by another machine"));
  shares(other_);
  if (!store_->tells_changes())
    return; // it takes 5 seconds
  clear(*a_, true);
  EXPECT_TRUE(b_->finds_none(other_)) << "so does one of all spaces";
}

TEST_P(RemoteContractFaults, AClearWhileTheStoreIsAwayIsAppliedBeforeTheSpaceIsReadThere) {
  if (lacks(ability::end))
    GTEST_SKIP() << store_->lacks(ability::end);
  start_two_impatient();
  store_and_share(chain_);
  store_->end();
  await_loss(*a_);
  clear(*a_);
  store_->start(having::its_values);
  await_store();
  EXPECT_TRUE(hears_of_clear(*b_, chain_)) << "although the machine that has cleared does not use the space";
  EXPECT_EQ(a_->found(chain_), 0U);
  shares(other_);
  if (!store_->tells_changes())
    return; // it takes 5 seconds
  clear(*b_);
  EXPECT_TRUE(a_->finds_none(other_)) << "it is told of the token that it has set";
}

TEST_P(RemoteContract, LostTokensLoseWhatTheStoreHas) {
  if (lacks(ability::lose_tokens))
    GTEST_SKIP() << store_->lacks(ability::lose_tokens);
  start_two();
  store_and_share(chain_);
  store_->lose_tokens();
  EXPECT_TRUE(hears_of_clear(*b_, chain_));
  store(*a_, other_); // the tokens that it knows are older, so it is this write that learns of the loss
  EXPECT_EQ(a_->found(chain_, on_remote), 0U);
  EXPECT_EQ(a_->found(chain_), 4U) << "but what a machine has itself stays";
  EXPECT_EQ(machine()->found(chain_), 0U) << "one that starts then finds none of it either";
  EXPECT_TRUE(b_->finds_all(other_));
  EXPECT_EQ(b_->client->load_and_check(other_), 4U);
  is_written_again(chain_);
}

// ---- what is lost, and what is wrong ----

TEST_P(RemoteContractFaults, ValuesThatTheStoreLostAreMisses) {
  if (lacks(ability::lose_values))
    GTEST_SKIP() << store_->lacks(ability::lose_values);
  start_two();
  store_and_share(chain_);
  store_->lose_values();
  if (store_->tells_changes()) {
    EXPECT_TRUE(b_->finds_none(chain_)) << "the store has told";
  }
  EXPECT_EQ(b_->client->load_and_check(chain_), 0U);
  EXPECT_TRUE(b_->finds_none(chain_));
  store_->end_damage();
  shares(other_);
}

TEST_P(RemoteContractFaults, AStoreThatStartsAgainEmptyBringsNothingBackAndTakesNewValues) {
  if (lacks(ability::start_empty))
    GTEST_SKIP() << store_->lacks(ability::start_empty);
  start_two_impatient();
  store_and_share(chain_);
  store_->end();
  await_loss(*a_);
  await_loss(*b_);
  store_->start(having::nothing);
  await_store();
  EXPECT_TRUE(hears_of_clear(*b_, chain_));
  EXPECT_TRUE(hears_of_clear(*a_, chain_, on_remote));
  EXPECT_EQ(b_->client->load_and_check(chain_), 0U);
  shares(other_);
  is_written_again(chain_);
}

TEST_P(RemoteContractFaults, WhatIsNotAsItWasWrittenIsNeverServed) {
  if (lacks(ability::do_damage))
    GTEST_SKIP() << store_->lacks(ability::do_damage);
  start_two();
  uint64_t seed = 10;
  for (const damage& each : store_->damages()) {
    SCOPED_TRACE(each.what);
    const auto chain = chain_of(++seed, 4);
    store_and_share(chain);
    const uint64_t before = misses(*b_, each.reason);
    each.begin(chain[2], chain[0]);
    const uint32_t delivered = b_->client->load_and_check(chain);
    EXPECT_LE(delivered, 2U);
    EXPECT_TRUE(delivered == 2 || each.costs_others) << "what is right before it is delivered: " << delivered;
    EXPECT_GT(misses(*b_, each.reason), before) << store_status(*b_);
    store_->end_damage();
    await_store();
  }
  shares(chain_);
}

// ---- stores that end or stand still ----

TEST_P(RemoteContractFaults, AStoreThatIsEndedByForceCostsMissesOnly) {
  if (lacks(ability::end))
    GTEST_SKIP() << store_->lacks(ability::end);
  start_two_impatient();
  store_and_share(chain_);
  store_->end();
  EXPECT_EQ(b_->client->load_and_check(chain_), 0U);
  await_loss(*b_);
  EXPECT_EQ(b_->client->tier("remote").state, "degraded");
  EXPECT_NE(b_->client->tier("remote").reason, "");
  EXPECT_EQ(b_->found(chain_), 0U);
  EXPECT_EQ(b_->client->store(other_), 4U) << "the daemon serves meanwhile";
  EXPECT_EQ(b_->client->load_and_check(other_), 4U);
  store_->start(having::its_values);
  await_store();
  EXPECT_TRUE(eventually_loads(*b_, chain_)) << "it has them still";
  shares(chain_of(3, 4));
}

// Every request in here ends while the store stands still.
TEST_P(RemoteContractFaults, AStoreThatStandsStillHoldsNobodyUp) {
  if (lacks(ability::stand_still))
    GTEST_SKIP() << store_->lacks(ability::stand_still);
  start_two_impatient();
  store_and_share(chain_);
  store_->stand_still();
  EXPECT_EQ(b_->found(chain_of(9, 4)), 0U) << "it does not wait for the store";
  EXPECT_EQ(b_->client->load_and_check(chain_), 0U);
  EXPECT_TRUE(b_->daemon.await_log("it does not answer"));
  EXPECT_EQ(b_->client->store(other_), 4U);
  EXPECT_EQ(b_->client->load_and_check(other_), 4U);
  store_->go_on();
  await_store();
  EXPECT_GT(misses(*b_, "unanswered"), 0U) << store_status(*b_);
  EXPECT_TRUE(eventually_loads(*b_, chain_)) << "it has them still";
  shares(chain_of(3, 4));
}

// ---- operators ----

TEST_P(RemoteContract, AnOperatorSeesItsKindAndStateAndProbesIt) {
  a_ = machine();
  const auto shown = store_status(*a_);
  EXPECT_EQ(shown["state"], "ready");
  EXPECT_EQ(shown["reason"], "");
  if (!store_->server().empty()) {
    EXPECT_EQ(shown["server"], store_->server());
    EXPECT_NE(shown["version"], "");
  }
  EXPECT_EQ(shown["tells_changes"], store_->tells_changes());
  EXPECT_EQ(shown["encrypted"], false);
  EXPECT_NE(shown["address"].get<std::string>().find(store_->address()), std::string::npos) << shown;
  const auto probed = answer_of(a_->daemon, {"remote", "probe"});
  EXPECT_EQ(probed["works"], true) << probed;
}

TEST_P(RemoteContract, ASweepRemovesWhatAClearHasLeft) {
  a_ = machine();
  if (!store_->lists_keys()) {
    const auto swept = terrace(a_->daemon, {"remote", "sweep"});
    EXPECT_EQ(swept.exit_code, 1);
    EXPECT_NE(swept.err.find("a plugin cannot list its keys"), std::string::npos) << swept.err;
    return;
  }
  store(*a_, chain_);
  clear(*a_);
  store(*a_, chain_of(2, 2));
  const auto counted = answer_of(a_->daemon, {"remote", "sweep", "--dry-run"});
  EXPECT_EQ(counted["stale"], 4) << counted;
  EXPECT_GE(counted["stale_bytes"], 4 * object_bytes);
  EXPECT_EQ(counted["current"], 2) << counted;
  EXPECT_EQ(counted["unknown"], 0) << counted;
  EXPECT_EQ(counted["removed"], 0) << counted;
  EXPECT_EQ(answer_of(a_->daemon, {"remote", "sweep"})["removed"], 4);
  EXPECT_TRUE(a_->daemon.await_log("an operator's sweep has removed 4 values"));
  EXPECT_EQ(answer_of(a_->daemon, {"remote", "sweep"})["stale"], 0);
  chill(*a_, chain_of(2, 2));
  EXPECT_EQ(a_->client->load_and_check(chain_of(2, 2)), 2U);
}

} // namespace
} // namespace terrace::e2e::contract
