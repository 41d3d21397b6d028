// Leases: what they protect, who may use them, and when they end.
#include "tests/support/raw_client.hpp"
#include "workload.hpp"

namespace terrace::e2e {
namespace lease_test {

using test::frame_with;
using test::raw_client;

constexpr uint64_t host_objects = 31; // in the default 32 MiB

TEST(Lease, HostArenaHoldsTheObjectsThatTheseTestsCountOn) {
  EXPECT_EQ(objects_in(daemon_options{}.host_bytes), host_objects);
}

TEST(Lease, PressureDoesNotEvictWhatIsLeased) {
  daemon_under_test daemon;
  tester holder(daemon.socket(), "holder");
  tester other(daemon.socket(), "other");
  auto kept = chain_of(1, 4);
  auto left = chain_of(2, 4);
  holder.store(kept);
  holder.store(left);
  auto found = holder.lookup(kept, true);
  auto places = holder->read_lease(found.held.id(), {}, patiently());
  ASSERT_TRUE(places);
  for (uint64_t i = 0; i < 3 * host_objects; ++i)
    other.store(chain_of(100 + i, 1));
  EXPECT_EQ(other.lookup(left).found_chunks, 0U);
  EXPECT_EQ(other.lookup(kept).found_chunks, 4U);
  for (size_t i = 0; i < kept.size(); ++i)
    EXPECT_TRUE(has_content(kept[i], places->objects[i]));
}

TEST(Lease, AnotherConnectionOfTheGroupUsesItById) {
  daemon_under_test daemon;
  tester scheduler(daemon.socket(), "scheduler");
  tester worker(daemon.socket(), "worker");
  auto chain = chain_of(1, 4);
  scheduler.store(chain);
  auto found = scheduler.lookup(chain, true);

  auto places = worker->read_lease(found.held.id(), {1, 2}, patiently());
  ASSERT_TRUE(places) << places.error().text;
  ASSERT_EQ(places->objects.size(), 2U);
  EXPECT_TRUE(has_content(chain[1], places->objects[0]));
  EXPECT_TRUE(has_content(chain[2], places->objects[1]));

  auto request = worker.load_of(chain);
  request.what = {};
  request.lease = found.held.id();
  auto loaded = worker->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 4U);
  EXPECT_TRUE(has_content(chain[3], worker.piece(3)));
}

TEST(Lease, IsUnknownToAnotherGroup) {
  daemon_under_test daemon;
  std::string listen = "[[listen]]\npath = \"" + daemon.socket() + "\"\ngroup = \"one\"\n" +
                       "[[listen]]\npath = \"" + daemon.second_socket() + "\"\ngroup = \"two\"\n";
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.configure({.listen = listen});
  daemon.start();
  tester owner(daemon.socket(), "owner");
  tester stranger(daemon.second_socket(), "stranger");
  auto chain = chain_of(1, 2);
  owner.store(chain);
  EXPECT_EQ(stranger.lookup(chain).found_chunks, 0U); // and what it protects is not found either
  auto found = owner.lookup(chain, true);
  ASSERT_EQ(found.found_chunks, 2U);
  auto places = stranger->read_lease(found.held.id(), {}, patiently());
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().code, errc::gone);
  EXPECT_TRUE(owner->read_lease(found.held.id(), {}, patiently()));
}

TEST(Lease, EndsWithItsOwnerForEveryUser) {
  daemon_under_test daemon;
  tester user(daemon.socket(), "user");
  auto chain = chain_of(1, 2);
  user.store(chain);
  lease_id id;
  {
    tester owner(daemon.socket(), "owner");
    auto found = owner.lookup(chain, true);
    id = found.held.id();
    ASSERT_TRUE(user->read_lease(id, {}, patiently()));
    ::shutdown(owner->descriptor(), SHUT_RDWR);
  }
  // The user reads those places, so they stay until it lets go; then everything can be evicted.
  user->adopt(id).release();
  occupy(user, 100, host_objects);
  auto places = user->read_lease(id, {}, patiently());
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().code, errc::gone);
}

TEST(Lease, CannotBeReleasedTwice) {
  daemon_under_test daemon;
  tester storer(daemon.socket());
  auto chain = chain_of(1, 1);
  storer.store(chain);
  auto found = storer.lookup(chain, true);
  lease_id id = found.held.id();
  auto release = [&](uint64_t request) {
    return frame_with(protocol::kind::release, request, [&](auto& body) {
      return wire::CreateRelease(body, body.CreateVector(id.bytes.data(), id.bytes.size()));
    });
  };
  raw_client stranger(daemon.socket()); // a client that neither owns nor reads the lease
  ASSERT_TRUE(stranger.greet());
  stranger.send(release(2));
  auto refused = stranger.receive();
  ASSERT_TRUE(refused && refused->is_error());
  EXPECT_EQ(refused->code(), errc::gone);

  EXPECT_TRUE(storer->read_lease(id, {}, patiently()));
  found.held.release();
  found.held.release(); // a handle gives back once
  storer->adopt(id).release();
  auto places = storer->read_lease(id, {}, patiently());
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().code, errc::gone);
  EXPECT_EQ(storer.status().groups.at(0).leases, 0U);
}

} // namespace lease_test
} // namespace terrace::e2e
