// Several machines share what they compute through one redis-server, and nothing that a machine cleared is found by any other. What
// other kinds of stores promise as well is in remote_contract_test.cpp.
#include "remote_fixture.hpp"

#include "tests/support/scrape.hpp"

#include <cstdint>
#include <filesystem>

namespace terrace::e2e {
namespace {

class SharedCache : public RemoteStores {
 protected:
  std::unique_ptr<remote_machine> machine(const daemon_options& with = {},
                                          client::space_spec spec = test_space()) {
    daemon_options options = with;
    if (options.more.empty())
      options.more = section();
    auto made = std::make_unique<remote_machine>(options, std::move(spec));
    made->await_store();
    return made;
  }
  void start_two() {
    start_store();
    a_ = machine();
    b_ = machine();
  }
  /// The number of objects in the store.
  int64_t stored() { return ask_store({"EVAL", "return #redis.call('keys', 'terrace/t1/*/*/*/*')", "0"}); }

  std::unique_ptr<remote_machine> a_, b_;
};

TEST_F(SharedCache, CountsWhatItAsksReadsAndMisses) {
  start_store();
  a_ = machine();
  const uint16_t port = test::free_port();
  b_ = machine({.metrics = "127.0.0.1:" + std::to_string(port), .more = section()});
  auto counted = [port](const std::string& name, const std::string& label = "") {
    return test::number_behind(test::scrape(port),
                               "terrace_remote_" + name + "{group=\"default\",tier=\"remote\"" + label + "}");
  };
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(a_->finds_all(chain, on_remote));
  EXPECT_EQ(b_->found(chain), 4U);
  EXPECT_EQ(b_->found(chain_of(2, 4)), 0U);
  EXPECT_EQ(counted("presence_total", ",answer=\"present\""), 4);
  EXPECT_EQ(counted("presence_total", ",answer=\"absent\""), 4);
  EXPECT_EQ(b_->found(chain), 4U);
  EXPECT_EQ(counted("presence_total", ",answer=\"known\""), 4);
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
  EXPECT_EQ(counted("read_objects_total"), 4);
  EXPECT_EQ(counted("read_bytes_total"), 4 * static_cast<double>(object_bytes));
  EXPECT_EQ(counted("misses_total", ",reason=\"wrong_payload\""), 0);
  EXPECT_EQ(b_->client->store(chain_of(3, 2)), 2U);
  EXPECT_TRUE(eventually([&] { return counted("written_objects_total") == 2; }));
  EXPECT_EQ(counted("written_bytes_total"), 2 * static_cast<double>(object_bytes));
  auto cleared = (*a_->client)->admin().clear(&a_->client->space(), patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
  EXPECT_TRUE(eventually([&] { return counted("clears_by_others_total") == 1; }));
  EXPECT_EQ(counted("late_lookups_total"), 0);
}

TEST_F(SharedCache, ALoadNeedsNoLookup) {
  start_two();
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(a_->finds_all(chain, on_remote));
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
}

TEST_F(SharedCache, ALookupWithALeaseBringsThemToHostMemory) {
  start_two();
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(a_->finds_all(chain, on_remote));
  auto found = b_->client->lookup(chain, true);
  EXPECT_EQ(found.found_chunks, 4U);
  EXPECT_EQ(found.tiers, std::vector<tier_kind>(4, tier_kind::host)) << "a lease promises nothing else";
  stop_store();
  auto read = (*b_->client)->read_lease(found.held.id());
  ASSERT_TRUE(read) << read.error().text;
  ASSERT_EQ(read->objects.size(), 4U);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(has_content(chain[i], read->objects[i]));
}

TEST_F(SharedCache, ALookupWithALeaseInTheStoreAloneFindsNothingElse) {
  start_two();
  auto chain = chain_of(1, 4), other = chain_of(2, 4);
  a_->client->store(chain);
  ASSERT_TRUE(a_->finds_all(chain, on_remote));
  b_->client->store(other);
  ASSERT_TRUE(b_->finds_all(other, on_remote));
  auto gone =
      (*b_->client)
          ->admin()
          .evict({.in = b_->client->space(), .what = client::prefix::of_digests(other), .tiers = on_remote},
                 patiently());
  ASSERT_TRUE(gone) << gone.error().text;
  ASSERT_TRUE(eventually([&] { return stored() == 4; })) << "the store removes them behind the answer";
  ASSERT_TRUE(b_->finds_none(other, on_remote));
  EXPECT_EQ(b_->client->lookup(other, true, on_remote).found_chunks, 0U) << "host memory alone has it";
  auto found = b_->client->lookup(chain, true, on_remote);
  EXPECT_EQ(found.found_chunks, 4U) << "it is brought to host memory, and leased there";
  EXPECT_EQ(found.tiers, std::vector<tier_kind>(4, tier_kind::host));
}

TEST_F(SharedCache, APrefetchBringsThemToHostMemory) {
  start_two();
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(a_->finds_all(chain, on_remote));
  auto brought =
      (*b_->client)
          ->prefetch({.in = b_->client->space(), .what = client::prefix::of_digests(chain)}, patiently());
  ASSERT_TRUE(brought) << brought.error().text;
  EXPECT_EQ(b_->found(chain, on_host), 4U);
}

TEST_F(SharedCache, OutlivesItsDaemons) {
  start_store();
  a_ = machine();
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(a_->finds_all(chain, on_remote));
  a_->restart();
  EXPECT_EQ(a_->client->load_and_check(chain), 4U);
  a_.reset();
  b_ = machine();
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
}

TEST_F(SharedCache, SaltsAndRealmsAreApart) {
  start_store();
  a_ = machine();
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(a_->finds_all(chain, on_remote));
  auto salted = test_space();
  salted.salt = "another tenant";
  b_ = machine({}, salted);
  EXPECT_EQ(b_->found(chain), 0U);
  make_key(folder_ / "other", 'o');
  std::string other = section() + "prefix = \"terrace/\"\n";
  other.replace(other.find(key_file()), key_file().size(), folder_ / "other");
  auto c = machine({.more = other});
  EXPECT_EQ(c->found(chain), 0U);
  EXPECT_EQ(c->client->store(chain), 4U);
  ASSERT_TRUE(c->finds_all(chain, on_remote));
  EXPECT_EQ(stored(), 8);
}

TEST_F(SharedCache, RanksAreApart) {
  start_store();
  auto sharded = test_space();
  sharded.world_size = 2;
  a_ = machine({}, sharded);
  b_ = machine({}, sharded);
  auto chain = chain_of(1, 4);
  EXPECT_EQ(a_->client->store(chain), 4U) << "rank 0";
  ASSERT_TRUE(eventually([&] { return stored() == 4; }));
  EXPECT_EQ(b_->found(chain), 0U) << "rank 1 is missing";
}

/// What a machine with a disk finds after it was away while another one cleared.
class AwayFromAClear : public SharedCache {
 protected:
  void start_apart() {
    start_store();
    a_ = machine({.disk_bytes = 64 * mebibyte});
    b_ = machine();
    ASSERT_TRUE(a_->daemon.await_log("joined"));
    EXPECT_EQ(a_->client->store(chain_), 4U);
    ASSERT_TRUE(a_->finds_all(chain_, on_disk) && a_->finds_all(chain_, on_remote));
    ASSERT_TRUE(b_->finds_all(chain_));
    ASSERT_TRUE(eventually([&] { return keeps_tokens(); }));
  }
  /// The record of the tokens that the first machine knows; empty: there is none.
  std::string kept_tokens() const {
    const auto state = std::filesystem::path(a_->daemon.socket()).parent_path() / "own-state";
    for (const auto& each : std::filesystem::directory_iterator(state))
      if (each.path().filename().string().starts_with("tokens-") && each.path().extension() != ".new")
        return read_file(each.path());
    return {};
  }
  /// Those of the realm and of the space.
  bool keeps_tokens() const {
    return std::ranges::count(kept_tokens(), '\n') == 5; // title, store, all, space, checksum
  }
  /// A clear that came while the volume was opened is repeated once it has joined, and takes what was stored meanwhile with it. Until
  /// then the record says that a token is not known.
  bool has_cleared_since(const std::string& before) const {
    const std::string unknown = std::to_string(UINT64_MAX);
    return eventually([&] {
      const std::string now = kept_tokens();
      return keeps_tokens() && now != before && now.find(unknown) == std::string::npos;
    });
  }
  void come_back() {
    a_->daemon.start();
    a_->connect();
    a_->await_store();
    ASSERT_TRUE(eventually([&] { return a_->client->tier("disk").state == "ready"; }));
  }
  const std::vector<digest> chain_ = chain_of(1, 4);
};

TEST_F(AwayFromAClear, OfItsSpaceFindsNothing) {
  start_apart();
  a_->daemon.kill();
  const std::string before = kept_tokens();
  auto cleared = (*b_->client)->admin().clear(&b_->client->space(), patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
  come_back();
  EXPECT_TRUE(a_->finds_none(chain_)) << "its disk had them";
  ASSERT_TRUE(has_cleared_since(before));
  EXPECT_EQ(a_->client->store(chain_of(2, 4)), 4U);
  ASSERT_TRUE(a_->finds_all(chain_of(2, 4), on_disk));
  a_->daemon.terminate();
  come_back();
  EXPECT_TRUE(a_->finds_all(chain_of(2, 4), on_disk)) << "nobody has cleared these";
}

TEST_F(AwayFromAClear, OfEverythingFindsNothing) {
  start_apart();
  a_->daemon.terminate();
  auto cleared = (*b_->client)->admin().clear(nullptr, patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
  come_back();
  EXPECT_TRUE(a_->finds_none(chain_));
}

TEST_F(AwayFromAClear, IsToldThatItsTokensCannotBeKept) {
  start_apart();
  a_->daemon.terminate();
  const auto state = std::filesystem::path(a_->daemon.socket()).parent_path() / "own-state";
  std::filesystem::remove_all(state);
  write_file(state, "no folder");
  a_->daemon.start();
  a_->connect();
  EXPECT_TRUE(a_->daemon.await_log("the tokens of its spaces cannot be kept"));
  std::filesystem::remove(state);
}

TEST_F(AwayFromAClear, ThatDidNotHappenFindsAll) {
  start_apart();
  a_->daemon.terminate();
  come_back();
  EXPECT_TRUE(a_->finds_all(chain_, on_disk));
  EXPECT_EQ(a_->client->load_and_check(chain_), 4U);
}

TEST_F(SharedCache, AClearWithoutTheStoreOutlivesTheDaemon) {
  const std::vector<std::string> durable{"--appendonly", "yes", "--appendfsync", "always"};
  start_store(durable);
  a_ = machine({.disk_bytes = 64 * mebibyte});
  b_ = machine();
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(b_->finds_all(chain));
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
  stop_store();
  ASSERT_TRUE(a_->daemon.await_log("is out of service"));
  auto cleared = (*a_->client)->admin().clear(&a_->client->space(), patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
  a_->client.reset();
  EXPECT_EQ(a_->daemon.terminate(), 0);
  a_->daemon.start();
  start_store(durable);
  EXPECT_TRUE(b_->finds_none(chain)) << "nobody has opened the space on the first machine";
  a_->connect();
  a_->await_store();
  EXPECT_TRUE(a_->finds_none(chain));
}

TEST_F(SharedCache, AClearThatTheStoreRefusesIsToldAgain) {
  start_two();
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(b_->finds_all(chain));
  resp_client server(store_->socket());
  EXPECT_EQ(server.call({"ACL", "SETUSER", "default", "-set"}), "OK");
  auto cleared = (*a_->client)->admin().clear(&a_->client->space(), patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
  EXPECT_EQ(server.call({"ACL", "SETUSER", "default", "+set"}), "OK");
  EXPECT_TRUE(b_->finds_none(chain)) << "although nobody uses the first machine";
}

TEST_F(SharedCache, WhatIsStoredWithoutTheStoreIsWrittenWhenItIsUsedAgain) {
  start_two();
  stop_store();
  ASSERT_TRUE(eventually([&] { return a_->client->tier("remote").state != "ready"; }));
  auto chain = chain_of(1, 4);
  EXPECT_EQ(a_->client->store(chain), 4U);
  start_store();
  a_->await_store();
  b_->await_store();
  EXPECT_EQ(b_->found(chain), 0U);
  EXPECT_TRUE(eventually([&] { return a_->client->load_and_check(chain) == 4 && b_->found(chain) == 4; }));
}

TEST_F(SharedCache, AStoreThatComesBackEmptyGetsWhatIsUsedAgain) {
  start_two();
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(b_->finds_all(chain));
  stop_store();
  for (const auto& one : {a_.get(), b_.get()})
    ASSERT_TRUE(eventually([&] { return one->client->tier("remote").state != "ready"; }));
  start_store();
  a_->await_store();
  b_->await_store();
  ASSERT_TRUE(eventually([&] { return a_->client->tier("remote").objects == 0; }));
  EXPECT_TRUE(a_->daemon.await_log("came back without what it had"));
  EXPECT_TRUE(eventually([&] { return a_->client->load_and_check(chain) == 4 && b_->found(chain) == 4; }));
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
}

TEST_F(SharedCache, AStoreThatRestartsWithAnOldCopyBringsNothingBackThatWasCleared) {
  start_two();
  auto chain = chain_of(1, 4), later = chain_of(2, 4);
  a_->client->store(chain);
  ASSERT_TRUE(b_->finds_all(chain));
  EXPECT_EQ(resp_client(store_->socket()).call({"SAVE"}), "OK");
  auto cleared = (*a_->client)->admin().clear(&a_->client->space(), patiently());
  ASSERT_TRUE(cleared) << cleared.error().text;
  EXPECT_TRUE(b_->finds_none(chain));
  stop_store();
  for (const auto& one : {a_.get(), b_.get()})
    ASSERT_TRUE(eventually([&] { return one->client->tier("remote").state != "ready"; }));
  start_store();
  for (const auto& one : {a_.get(), b_.get()}) {
    one->await_store();
    EXPECT_EQ(one->found(chain), 0U);
  }
  EXPECT_EQ(a_->client->store(later), 4U);
  EXPECT_TRUE(b_->finds_all(later)) << "and both use the store";
  EXPECT_EQ(machine()->found(chain), 0U) << "a machine that starts then finds none of it either";
}

TEST_F(SharedCache, AServerThatForgetsWhatItWasAskedForCostsNoHit) {
  start_store({"--tracking-table-max-keys", "4"}); // of all beyond it says that they may have changed
  a_ = machine();
  b_ = machine();
  constexpr uint64_t chains = 40;
  for (uint64_t seed = 1; seed <= chains; ++seed)
    EXPECT_EQ(a_->client->store(chain_of(seed, 8)), 8U);
  for (uint64_t seed = 1; seed <= chains; ++seed)
    ASSERT_TRUE(a_->finds_all(chain_of(seed, 8), on_remote)) << seed;
  for (uint64_t seed = 1; seed <= chains; ++seed) {
    EXPECT_EQ(b_->found(chain_of(seed, 8)), 8U) << seed;
    EXPECT_EQ(b_->client->load_and_check(chain_of(seed, 8)), 8U) << seed;
  }
}

TEST_F(SharedCache, AMachineThatLeavesOrJoinsDisturbsNobody) {
  start_two();
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(b_->finds_all(chain));
  a_->daemon.is_not_checked();
  a_->daemon.kill();
  EXPECT_EQ(b_->client->load_and_check(chain), 4U);
  auto c = machine();
  EXPECT_EQ(c->client->load_and_check(chain), 4U);
  auto more = chain_of(2, 4);
  c->client->store(more);
  ASSERT_TRUE(b_->finds_all(more));
  EXPECT_EQ(b_->client->load_and_check(more), 4U);
}

TEST_F(SharedCache, AnOperatorsEvictionRemovesValues) {
  start_two();
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(a_->finds_all(chain, on_remote));
  ASSERT_TRUE(b_->finds_all(chain));
  auto gone = (*a_->client)
                  ->admin()
                  .evict({.in = a_->client->space(),
                          .what = client::prefix::of_digests(chain),
                          .tiers = on_host | on_remote},
                         patiently());
  ASSERT_TRUE(gone) << gone.error().text;
  EXPECT_TRUE(b_->finds_none(chain));
  EXPECT_EQ(stored(), 0);
}

TEST_F(SharedCache, AnEvictionRemovesWhatItsMachineHasNotLookedUp) {
  start_two();
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(a_->finds_all(chain, on_remote));
  auto gone = (*b_->client)
                  ->admin()
                  .evict({.in = b_->client->space(), .what = client::prefix::of_digests(chain)}, patiently());
  ASSERT_TRUE(gone) << gone.error().text;
  EXPECT_EQ(b_->found(chain), 0U);
  EXPECT_EQ(stored(), 0);
}

TEST_F(SharedCache, AnEvictionSaysThatTheStoreIsAway) {
  start_two();
  auto chain = chain_of(1, 4);
  a_->client->store(chain);
  ASSERT_TRUE(a_->finds_all(chain, on_remote));
  stop_store();
  auto gone = (*a_->client)
                  ->admin()
                  .evict({.in = a_->client->space(), .what = client::prefix::of_digests(chain)}, patiently());
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, errc::busy);
  EXPECT_NE(gone.error().text.find("may still have"), std::string::npos) << gone.error().text;
  EXPECT_EQ(a_->found(chain, on_host), 0U) << "the other tiers have removed it";
}

} // namespace
} // namespace terrace::e2e
