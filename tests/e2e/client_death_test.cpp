// A client's death frees everything it held, at once, and disturbs nobody.
#include "tests/support/child_process.hpp"
#include "workload.hpp"

#include <sys/socket.h>

namespace terrace::e2e {
namespace {

using test::child_process;
using test::child_voice;

constexpr uint64_t host_objects = 31;

/// Keeps 32 requests in flight, stores and loads of its own chunks, until it is killed. Says 'w' once all 32
/// are sent. Each load has a place of its own, because the result of two loads into one place is undefined.
int work_until_killed(const std::string& socket, const child_voice& voice) {
  tester client(socket, "victim", (8 + 17) * object_bytes);
  std::vector<digest> shared = chain_of(1, 8);
  std::vector<std::vector<digest>> chains;
  for (uint64_t i = 0; i < 64; ++i)
    chains.push_back(chain_of(10'000 + i, 4));
  client.store(shared);
  auto held = client.lookup(shared, true);
  auto places = client->read_lease(held.held.id(), {}, patiently());
  std::vector<client::ticket<client::store_result>> stores;
  std::vector<client::ticket<client::load_result>> loads;
  for (size_t next = 0;; ++next) {
    if (stores.size() == 16) {
      if (next == 16)
        voice.say('w');
      (void) stores.front().wait(patiently());
      (void) loads.front().wait(patiently());
      stores.erase(stores.begin());
      loads.erase(loads.begin());
    }
    auto store = client->async().store(client.store_of(chains[next % 64]), patiently());
    const auto& wanted = next % 2 == 0 ? shared : chains[next % 64];
    auto part = static_cast<uint32_t>(next % 4);
    auto load = client->async().load(client.load_of(wanted, {part, 1}, 8 + next % 17), patiently());
    if (!store || !load)
      return 1;
    stores.push_back(std::move(*store));
    loads.push_back(std::move(*load));
  }
}

/// Afterwards everything in the arena can be freed, and what the witness leased meanwhile is untouched.
class ClientDeath : public ::testing::Test {
 protected:
  void expect_all_free() {
    occupy(witness_, seed_ += 100, host_objects); // uses chunks that nobody has stored before
    // The occupier's leases ended with the vector; only the witness is connected, and it holds nothing else.
    EXPECT_EQ(witness_.tier("host").waiting_requests, 0U);
  }

  daemon_under_test daemon_;
  tester witness_{daemon_.socket(), "witness"};
  uint64_t seed_ = 1000;
};

TEST_F(ClientDeath, KilledInTheMiddleOfStoresAndLoadsItFreesEverything) {
  for (int round = 0; round < 5; ++round) {
    child_process victim(
        [this](const child_voice& voice) { return work_until_killed(daemon_.socket(), voice); });
    ASSERT_EQ(victim.await_word(), 'w');
    EXPECT_EQ(victim.kill(), 128 + SIGKILL);
    expect_all_free();
  }
}

TEST_F(ClientDeath, ConcernsItAloneEvenWhileAChildOfItHoldsTheSocket) {
  child_process victim([this](const child_voice& voice) {
    tester client(daemon_.socket(), "victim");
    auto chain = chain_of(1, 8);
    client.store(chain);
    auto held = client.lookup(chain, true);
    auto places = client->read_lease(held.held.id(), {}, patiently());
    std::vector<client::ticket<client::store_result>> stores;
    auto more = chain_of(2, 8);
    for (int i = 0; i < 16; ++i)
      if (auto ticket = client->async().store(client.store_of(more), patiently()))
        stores.push_back(std::move(*ticket));
    if (::fork() == 0) { // the child has the socket, the region and the mapping until the test lets it go
      voice.say('g');
      voice.stay();
      ::_exit(0);
    }
    voice.stay();
    return 0;
  });
  ASSERT_EQ(victim.await_word(), 'g');
  EXPECT_EQ(victim.kill(), 128 + SIGKILL);
  expect_all_free();
  victim.let_go();
}

TEST_F(ClientDeath, WhileOthersLeaseAllMemoryLeavesNothing) {
  auto held = occupy(witness_, 100, host_objects);
  child_process victim([this](const child_voice& voice) {
    tester client(daemon_.socket(), "victim");
    auto ticket = client->async().store(client.store_of(chain_of(1, 8)), patiently());
    (void) client.tier("host"); // answered after the store, which has therefore arrived
    voice.say(ticket ? 'w' : 'x');
    voice.stay();
    return 0;
  });
  ASSERT_EQ(victim.await_word(), 'w');
  victim.kill();
  held.clear();
  expect_all_free();
  EXPECT_EQ(witness_.lookup(chain_of(1, 8)).found_chunks, 0U);
}

TEST_F(ClientDeath, LeavesReservationsAndLeasesOfOthersAlone) {
  auto chain = chain_of(3, 4);
  witness_.store(chain);
  auto found = witness_.lookup(chain, true);
  auto places = witness_->read_lease(found.held.id(), {}, patiently());
  ASSERT_TRUE(places);
  auto fresh = chain_of(4, 2);
  client::reserve_request request;
  request.in = witness_.space();
  request.what = client::prefix::of_digests(fresh);
  auto reserved = witness_->reserve(request, patiently());
  ASSERT_TRUE(reserved);
  child_process victim([&](const child_voice& voice) { return work_until_killed(daemon_.socket(), voice); });
  ASSERT_EQ(victim.await_word(), 'w');
  victim.kill();
  // The last stores may evict what nobody leases.
  ASSERT_TRUE(eventually([&] { return witness_.status().clients.size() == 1; }));
  for (size_t i = 0; i < fresh.size(); ++i)
    fill_content(fresh[i], reserved->objects()[i]);
  auto committed = witness_->commit(std::move(*reserved), patiently());
  ASSERT_TRUE(committed) << committed.error().text;
  EXPECT_EQ(witness_.load_and_check(fresh), 2U);
  for (size_t i = 0; i < chain.size(); ++i)
    EXPECT_TRUE(has_content(chain[i], places->objects[i]));
}

TEST_F(ClientDeath, ClosedSocketOfALivingReaderQuarantinesUntilItDies) {
  child_process reader([this](const child_voice& voice) {
    tester client(daemon_.socket(), "reader");
    auto held = occupy(client, 200, host_objects);
    for (auto& lease : held)
      if (!client->read_lease(lease.id(), {}, patiently()))
        return 1;
    ::shutdown(client->descriptor(), SHUT_RDWR);
    voice.say('c');
    voice.stay();
    return 0;
  });
  ASSERT_EQ(reader.await_word(), 'c');
  ASSERT_TRUE(daemon_.await_log("closed its socket; objects that it may be reading are kept"));
  auto chain = chain_of(1, 1);
  auto refused =
      witness_->async().store(witness_.store_of(chain), client::within(std::chrono::milliseconds(50)));
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->wait(patiently()));
  reader.kill();
  EXPECT_TRUE(stored_when_free(witness_, chain));
  expect_all_free();
}

TEST_F(ClientDeath, LivingReaderThatConfirmsOnReconnectEndsItsQuarantine) {
  tester reader(daemon_.socket(), "reader");
  auto held = occupy(reader, 200, host_objects);
  std::vector<client::located_objects> places;
  for (auto& lease : held)
    places.push_back(reader->read_lease(lease.id(), {}, patiently()).value());

  ::shutdown(reader->descriptor(), SHUT_RDWR);
  ASSERT_TRUE(daemon_.await_log("closed its socket; objects that it may be reading are kept"));
  EXPECT_FALSE(reader->admin().status(patiently()));
  auto same = reader->reconnect(patiently()); // it still reads, so it confirms nothing
  ASSERT_TRUE(same) << same.error().text;
  EXPECT_TRUE(*same);
  auto chain = chain_of(1, 1);
  auto refused =
      witness_->async().store(witness_.store_of(chain), client::within(std::chrono::milliseconds(50)));
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->wait(patiently()));
  EXPECT_TRUE(has_content(chain_of(200, 1)[0], places[0].objects[0]));

  places.clear();
  held.clear();
  ::shutdown(reader->descriptor(), SHUT_RDWR);
  EXPECT_FALSE(reader->admin().status(patiently()));
  // It no longer reads anything of the first connection, and confirms that.
  ASSERT_TRUE(reader->reconnect(patiently()));
  EXPECT_TRUE(stored_when_free(witness_, chain));
  expect_all_free();
}

TEST_F(ClientDeath, ClosedSocketWithoutPlacesInUseFreesAtOnce) {
  {
    tester client(daemon_.socket(), "brief");
    auto held = occupy(client, 200, host_objects);
    ::shutdown(client->descriptor(), SHUT_RDWR);
  }
  expect_all_free();
}

} // namespace
} // namespace terrace::e2e
