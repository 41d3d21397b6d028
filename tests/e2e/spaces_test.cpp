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

TEST(Spaces, TheBoundsNameTheirOptions) {
  daemon_options small;
  small.connection = "spaces_max = 3\ngroup_spaces_max = 4\n";
  daemon_under_test daemon(small);
  tester first(daemon.socket());
  std::vector<client::space> open;
  for (uint32_t number : {1, 2})
    open.push_back(first->open_space(of_tenant(number), patiently()).value());
  auto refused = first->open_space(of_tenant(3), patiently());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::busy);
  EXPECT_NE(refused.error().text.find("connection.spaces_max"), std::string::npos) << refused.error().text;

  tester second(daemon.socket()); // the first's space
  ASSERT_TRUE(second->open_space(of_tenant(4), patiently()));
  refused = second->open_space(of_tenant(5), patiently());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::busy);
  EXPECT_NE(refused.error().text.find("connection.group_spaces_max"), std::string::npos)
      << refused.error().text;
  ASSERT_TRUE(first->close_space(open[0], patiently()));
  auto opened = second->open_space(of_tenant(5), patiently());
  EXPECT_TRUE(opened) << opened.error().text;
}

/// So many tenants come, store and go, one after the other.
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

} // namespace
} // namespace terrace::e2e
