// Clients that use what has arrived while the rest of a load or prefetch is in progress.
#include "pool_client.hpp"
#include "remote_fixture.hpp"

#include <sys/mman.h>

#include <optional>
#include <thread>

namespace terrace::e2e {
namespace arrivals_test {

constexpr uint32_t chunks = 4;

/// The tester's client with a page of counters.
class counting_client : public pool_client {
 public:
  explicit counting_client(const std::string& socket) : pool_client(socket, layered_space()) {
    registered_ = (*this)->register_region(page_, patiently()).value();
    counters.emplace(page_, registered_, 64, 2);
  }

  /// Loads all pools, object by object.
  client::load_request load_of(const std::vector<digest>& chain) {
    objects_ = lay_out(chain, {0, static_cast<uint32_t>(chain.size())}, {0, 1});
    auto request = (**this).load_of(chain, {0, static_cast<uint32_t>(chain.size())});
    request.runs = runs();
    request.progress = &*counters;
    counters->restart();
    return request;
  }
  bool has(const std::vector<digest>& chain, uint32_t chunk, size_t pool) {
    size_t object = chunk * 2 + pool;
    return has_content(content_of(chain[chunk], pool), piece(object, pools()[pool].object_bytes));
  }

  std::optional<client::arrivals> counters;

 private:
  client::region page_ = client::region::create("counters", 4096).value();
  client::registered_region registered_;
  std::vector<std::pair<digest, uint64_t>> objects_;
};

TEST(Arrivals, ALayersKvIsUsedBeforeTheLoadIsAnswered) {
  daemon_under_test daemon;
  counting_client client(daemon.socket());
  auto chain = chain_of(1, chunks);
  ASSERT_TRUE(client.store(chain, {0, chunks}, {0, 1}));
  auto found = (*client).lookup(chain, true);
  ASSERT_EQ(found.found_chunks, chunks);
  for (bool leased : {true, false}) { // pool by pool, and chunk by chunk
    auto request = client.load_of(chain);
    if (leased)
      request.lease = found.held.id();
    std::memset((*client).memory().data(), 0, (*client).memory().size());
    std::vector<std::thread> layers;
    for (uint32_t pool : {0U, 1U})
      layers.emplace_back([&, pool] {
        for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
          EXPECT_TRUE(client.counters->wait(pool, chunk + 1));
          EXPECT_TRUE(client.has(chain, chunk, pool)) << "chunk " << chunk << " of pool " << pool;
        }
        EXPECT_FALSE(client.counters->wait(pool, chunks + 1)) << "no more arrive, and the load has ended";
      });
    auto loaded = client->load(request, patiently());
    for (auto& layer : layers)
      layer.join();
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks, chunks);
    EXPECT_EQ(client.counters->chunks(0), chunks);
    EXPECT_EQ(client.counters->chunks(1), chunks);
  }
}

TEST(Arrivals, OfALoadThatEndsEarlyAreWhatItDelivered) {
  daemon_under_test daemon;
  counting_client client(daemon.socket());
  auto chain = chain_of(1, chunks);
  ASSERT_TRUE(client.store(chain, {0, 2}, {0, 1}));
  auto request = client.load_of(chain);
  EXPECT_FALSE(client.counters->wait(1, 1, client::within({}))) << "the time is over";
  std::thread waits([&] { EXPECT_FALSE(client.counters->wait(1, chunks)); });
  auto loaded = client->load(request, patiently());
  waits.join();
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 2U);
  EXPECT_EQ(client.counters->chunks(0), 2U);
  EXPECT_EQ(client.counters->chunks(1), 2U);
}

TEST(Arrivals, OfAPrefetchRiseToWhatItDelivered) {
  daemon_under_test daemon(daemon_options{.disk_bytes = 96 * mebibyte});
  ASSERT_TRUE(daemon.await_log("joined"));
  auto chain = chain_of(1, chunks);
  {
    counting_client client(daemon.socket());
    ASSERT_TRUE(client.store(chain, {0, chunks}, {0, 1}));
  }
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.start();
  ASSERT_TRUE(daemon.await_log("8 objects found"));
  counting_client client(daemon.socket());
  client::prefetch_request request{.in = (*client).space(),
                                   .what = client::prefix::of_digests(chain),
                                   .rule = client::stop_rule::wait,
                                   .progress = &*client.counters};
  client.counters->restart();
  std::thread waits([&] {
    EXPECT_TRUE(client.counters->wait(0, chunks));
    EXPECT_FALSE(client.counters->wait(0, chunks + 1));
  });
  auto done = client->prefetch(request, patiently());
  waits.join();
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->delivered_chunks, chunks);
  EXPECT_EQ(client.counters->chunks(0), chunks);
  EXPECT_EQ(client.counters->chunks(1), 0U) << "a prefetch has one counter";
}

TEST(Arrivals, WhoeverWaitsReturnsWhenTheDaemonIsLost) {
  daemon_under_test daemon;
  counting_client client(daemon.socket());
  auto chain = chain_of(1, chunks);
  auto request = client.load_of(chain);
  std::thread waits([&] { EXPECT_FALSE(client.counters->wait(0, 1)); });
  daemon.kill();
  auto loaded = client->load(request, patiently());
  waits.join();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::gone);
}

TEST(Arrivals, NeedCountersInsideAMappedRegion) {
  daemon_under_test daemon;
  counting_client client(daemon.socket());
  auto chain = chain_of(1, chunks);
  ASSERT_TRUE(client.store(chain, {0, chunks}, {0, 1}));
  auto memory = client::region::create("counters", 4096).value();
  auto region = client->register_region(memory, patiently());
  ASSERT_TRUE(region) << region.error().text;
  unique_fd unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  auto unmapped = client->register_region(unsealed.get(), 4096, patiently());
  ASSERT_TRUE(unmapped) << unmapped.error().text;

  auto expect_refused = [&](const client::arrivals& counters, const std::string& why) {
    auto request = client.load_of(chain);
    request.progress = &counters;
    auto loaded = client->load(request, patiently());
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, errc::bad_request);
    EXPECT_NE(loaded.error().text.find(why), std::string::npos) << loaded.error().text;
    client::prefetch_request ahead{
        .in = (*client).space(), .what = client::prefix::of_digests(chain), .progress = &counters};
    auto brought = client->prefetch(ahead, patiently());
    ASSERT_FALSE(brought);
    EXPECT_NE(brought.error().text.find(why), std::string::npos) << brought.error().text;
  };
  expect_refused(client::arrivals(memory, *unmapped, 0, 2), "expected arrivals in a region that is mapped");
  // The client's memory is larger than the registered part.
  auto large = client::region::create("large", 8192).value();
  expect_refused(client::arrivals(large, *region, 4096, 2), "inside the region of 4096 bytes");
  // Nothing else is disturbed.
  auto request = client.load_of(chain);
  EXPECT_TRUE(client->load(request, patiently()));
  EXPECT_EQ(client.counters->chunks(1), chunks);
}

class ArrivalsFromAStore : public RemoteStores {};

TEST_F(ArrivalsFromAStore, ComeLayerByLayer) {
  start_store();
  const auto chain = chain_of(1, chunks);
  const remote_machine stores({.more = section()}, layered_space());
  stores.await_store();
  counting_client first(stores.daemon.socket());
  ASSERT_TRUE(first.store(chain, {0, chunks}, {0, 1}));
  ASSERT_TRUE(stores.finds_all(chain, on_remote));
  const remote_machine loads({.more = section()}, layered_space());
  loads.await_store();
  ASSERT_TRUE(loads.finds_all(chain));
  counting_client second(loads.daemon.socket());
  change("if string.find(k, '/1.0/', 1, true) and string.find(k, '" + to_hex(chain[0]) +
         "', 1, true) then redis.call('set', k, string.sub(v, 1, -2) .. "
         "string.char((string.byte(v, -1) + 1) % 256)) end");
  auto request = second.load_of(chain);
  auto loaded = second->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 0U) << "the first chunk lacks its second layers";
  EXPECT_EQ(second.counters->chunks(0), chunks) << "all first layers came before";
  EXPECT_EQ(second.counters->chunks(1), 0U);
}

} // namespace arrivals_test
} // namespace terrace::e2e
