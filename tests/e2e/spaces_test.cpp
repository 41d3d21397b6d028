// Spaces are opened, closed and forgotten: a salt per tenant costs nothing once its tenant has gone.
#include "workload.hpp"

namespace terrace::e2e {
namespace {

client::space_spec of_tenant(uint32_t number) {
  auto spec = test_space();
  spec.salt = "tenant " + std::to_string(number);
  return spec;
}

TEST(Spaces, AClosedSpaceIsUnknownToItsConnectionAndKeepsItsObjects) {
  daemon_under_test daemon;
  tester client(daemon.socket());
  auto chain = chain_of(1, 2);
  client.store(chain);
  auto request = client.lookup_of(chain, true);
  auto found = client->lookup(request, patiently());
  ASSERT_TRUE(found);
  auto refused = client->close_space(client.space(), patiently());
  ASSERT_FALSE(refused) << "a lease is in it";
  EXPECT_EQ(refused.error().code, errc::busy);
  found->held.release();
  auto closed = client->close_space(client.space(), patiently());
  ASSERT_TRUE(closed) << closed.error().text;
  EXPECT_FALSE(client->lookup(request, patiently()));
  // Actors that have served its requests may refer to it for a moment longer.
  EXPECT_TRUE(eventually([&] { return client.status().groups.at(0).spaces == 0; }));
  request.in = client->open_space(test_space(), patiently()).value();
  EXPECT_EQ(client->lookup(request, patiently())->found_chunks, 2U);
}

TEST(Spaces, TheBoundOfAConnectionNamesItsOption) {
  daemon_under_test daemon({.connection = "group_spaces_max = 1024\n"});
  tester client(daemon.socket()); // has one space open
  std::vector<client::space> open;
  for (uint32_t number = 1; number < 64; ++number)
    open.push_back(client->open_space(of_tenant(number), patiently()).value());
  auto refused = client->open_space(of_tenant(64), patiently());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::busy);
  EXPECT_NE(refused.error().text.find("a 16th of connection.group_spaces_max"), std::string::npos)
      << refused.error().text;
  ASSERT_TRUE(client->close_space(open[0], patiently()));
  auto opened = client->open_space(of_tenant(64), patiently());
  EXPECT_TRUE(opened) << opened.error().text;
}

TEST(Spaces, TheBoundOfATrustGroupNamesItsOption) {
  daemon_under_test daemon({.connection = "group_spaces_max = 4\n"});
  tester first(daemon.socket());
  std::vector<client::space> open;
  for (uint32_t number : {1, 2})
    open.push_back(first->open_space(of_tenant(number), patiently()).value());
  tester second(daemon.socket()); // opens the first client's space
  ASSERT_TRUE(second->open_space(of_tenant(4), patiently()));
  auto refused = second->open_space(of_tenant(5), patiently());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::busy);
  EXPECT_NE(refused.error().text.find("connection.group_spaces_max"), std::string::npos)
      << refused.error().text;
  ASSERT_TRUE(first->close_space(open[0], patiently()));
  auto opened = second->open_space(of_tenant(5), patiently());
  EXPECT_TRUE(opened) << opened.error().text;
}

/// Makes this many tenants come, store and go, one after the other.
void serve_tenants(const daemon_under_test& daemon, uint32_t tenants) {
  tester client(daemon.socket());
  auto chain = chain_of(1, 1);
  for (uint32_t number = 0; number < tenants; ++number) {
    auto space = client->open_space(of_tenant(number), patiently());
    ASSERT_TRUE(space) << number << ": " << space.error().text;
    auto store = client.store_of(chain);
    store.in = *space;
    auto stored = client->store(store, patiently());
    ASSERT_TRUE(stored) << number << ": " << stored.error().text;
    EXPECT_EQ(stored->stored_chunks, 1U);
    auto closed = client->close_space(*space, patiently());
    ASSERT_TRUE(closed) << closed.error().text;
  }
}

TEST(Spaces, ASaltPerTenantWorksForAnyNumberOfTenantsInSequence) {
  daemon_options small;
  small.host_bytes = 8 * mebibyte;
  small.connection = "group_spaces_max = 16\n";
  daemon_under_test daemon(small);
  serve_tenants(daemon, 2000);
}

TEST(Spaces, TheDiskKeepsWhatTheLastTenantsStored) {
  daemon_options small;
  small.host_bytes = 8 * mebibyte;
  small.disk_bytes = 16 * mebibyte;
  small.connection = "group_spaces_max = 32\n";
  small.disk = "admission = \"always\"\n";
  daemon_under_test daemon(small);
  ASSERT_TRUE(daemon.await_log("joined"));
  constexpr uint32_t tenants = 200;
  serve_tenants(daemon, tenants);
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto chain = chain_of(1, 1);
  uint32_t found = 0;
  for (uint32_t number = tenants - 8; number < tenants; ++number) {
    auto request = client.lookup_of(chain);
    request.in = client->open_space(of_tenant(number), patiently()).value();
    found += client->lookup(request, patiently())->found_chunks;
  }
  EXPECT_GE(found, 4U);
}

// ---- one connection, one set of terms for a space ----

client::space_spec of_rank(uint32_t rank) {
  auto spec = test_space();
  spec.world_size = 2;
  spec.rank = rank;
  return spec;
}

TEST(Spaces, OneConnectionHasOneRankInASpace) {
  daemon_under_test daemon;
  tester zero(daemon.socket(), "zero", 8 * object_bytes, of_rank(0));
  auto refused = zero->open_space(of_rank(1), patiently());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_request);
  for (const char* part : {"rank 0", "rank 1", "another connection", "close"})
    EXPECT_NE(refused.error().text.find(part), std::string::npos) << part << ": " << refused.error().text;

  auto chain = chain_of(1, 2);
  EXPECT_EQ(zero.store(chain), 2U) << "as rank 0, which it still is";
  tester one(daemon.socket(), "one", 8 * object_bytes, of_rank(1));
  EXPECT_EQ(one->load(one.load_of(chain), patiently())->delivered_chunks, 0U) << "rank 1 has stored nothing";
  EXPECT_EQ(zero.load_and_check(chain), 2U);
}

TEST(Spaces, ASpaceIsClosedBeforeItIsOpenedWithOtherTerms) {
  daemon_under_test daemon;
  tester client(daemon.socket(), "client", 8 * object_bytes, of_rank(0));
  auto same = client->open_space(of_rank(0), patiently());
  ASSERT_TRUE(same) << same.error().text;
  EXPECT_EQ(same->fingerprint, client.space().fingerprint);

  const std::pair<const char*, std::function<void(client::space_spec&)>> others[] = {
      {"prefill_tokens_per_s", [](auto& spec) { spec.prefill_tokens_per_s = 1'000; }},
      {"tiers", [](auto& spec) { spec.defaults.tiers = 2; }},
      {"priority", [](auto& spec) { spec.defaults.priority = 3; }},
      {"deadline_ms", [](auto& spec) { spec.defaults.time = std::chrono::minutes(1); }},
      {"no_load", [](auto& spec) { spec.defaults.no_load = true; }},
      {"no_store", [](auto& spec) { spec.defaults.no_store = true; }},
  };
  for (const auto& [field, change] : others) {
    auto spec = of_rank(0);
    change(spec);
    auto refused = client->open_space(spec, patiently());
    ASSERT_FALSE(refused) << field;
    EXPECT_EQ(refused.error().code, errc::bad_request);
    EXPECT_NE(refused.error().text.find(field), std::string::npos) << refused.error().text;
  }
  auto chain = chain_of(1, 2);
  EXPECT_EQ(client.store(chain), 2U) << "its requests have the terms that it was opened with";
  EXPECT_EQ(client.load_and_check(chain), 2U);

  ASSERT_TRUE(client->close_space(client.space(), patiently()));
  auto again = client->open_space(of_rank(1), patiently());
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(client->load(client.load_of(chain), patiently())->delivered_chunks, 0U) << "it is rank 1 now";
}

TEST(Spaces, AWorkerWithoutTheSpaceHasNoRankInIt) {
  daemon_under_test daemon;
  tester zero(daemon.socket(), "zero", 8 * object_bytes, of_rank(0));
  tester one(daemon.socket(), "one", 8 * object_bytes, of_rank(1));
  auto chain = chain_of(1, 2);
  zero.store(chain);
  one.store(chain);
  auto found = zero.lookup(chain, true);
  ASSERT_EQ(found.found_chunks, 2U);

  tester stranger(daemon.socket()); // a client that has another space open
  auto refused = stranger->read_lease(found.held.id(), {}, patiently());
  ASSERT_FALSE(refused) << "whose bytes would it get?";
  EXPECT_EQ(refused.error().code, errc::bad_request);
  EXPECT_NE(refused.error().text.find("open_space"), std::string::npos) << refused.error().text;
  auto load = stranger.load_of(chain);
  load.in = {};
  load.what = {};
  load.lease = found.held.id();
  auto loaded = stranger->load(load, patiently());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::bad_request);

  ASSERT_TRUE(stranger->open_space(of_rank(1), patiently()));
  EXPECT_TRUE(stranger->read_lease(found.held.id(), {}, patiently()));
}

} // namespace
} // namespace terrace::e2e
