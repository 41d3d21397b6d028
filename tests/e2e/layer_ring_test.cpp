// Loads into memory of a device whose layers streams of the engine wait for: the simulated driver's GPU, and
// the device in host memory.
#include "layered_device.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/scrape.hpp"

#include <csignal>

namespace terrace::e2e {
namespace {

class LayerRing : public device_fixture {
 protected:
  /// Queues an engine's work for a load of `chunks` chunks: it reads each layer once it has arrived.
  static void compute(engine_stream& on, const layered_engine& engine, const client::layered_load& load,
                      size_t chunks) {
    for (uint32_t layer = 0; layer < engine.layers(); ++layer) {
      on.wait(load.layer(layer));
      on.read(engine.place(layer, 0), chunks * layer_bytes);
    }
    on.write(load.passed());
  }
};

TEST_P(LayerRing, AStreamThatWaitsFirstNeverReadsOldBytes) {
  auto port = test::free_port();
  auto with = gpu_daemon::options_of("");
  with.metrics = "127.0.0.1:" + std::to_string(port);
  daemon_under_test daemon(with);
  layered_engine engine(daemon.socket(), GetParam(), 8);
  engine_ring layers(engine, 3);
  engine_stream stream(engine.memory(), layers.memory);
  constexpr uint64_t loads = 7; // more loads than there are slots
  for (uint64_t seed = 1; seed <= loads; ++seed)
    engine.store(chain_of(seed, 8));
  for (uint64_t seed = 1; seed <= loads; ++seed) {
    auto chain = chain_of(seed, 8);
    auto load = layers.ring->begin();
    ASSERT_TRUE(load) << load.error().text;
    compute(stream, engine, *load, chain.size()); // before the daemon has received the load
    EXPECT_FALSE(layers.ring->arrived(*load, 0));
    auto found = (*engine).lookup(chain, true);
    auto request = engine.load_of(chain);
    request.lease = found.held.id();
    request.layers = *load;
    auto ticket = engine->async().load(request, patiently());
    ASSERT_TRUE(ticket) << ticket.error().text;
    // Finishes without the answer.
    EXPECT_TRUE(stream.finish() == engine.all_layers_of(chain)) << "load " << seed;
    auto loaded = layers.ring->end(*load, ticket->wait(patiently()));
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks, chain.size());
  }
  auto name = "terrace_device_generations_total{device=\"" + engine.memory().shared().device + "\"}";
  EXPECT_EQ(test::number_behind(test::scrape(port), name), loads * device_layers);
}

TEST_P(LayerRing, TheDeviceWritesTheGenerationsOfLoadsByPrefixToo) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), 8);
  engine_ring layers(engine, 3);
  auto chain = chain_of(1, 8);
  engine.store(chain);
  auto load = layers.ring->begin();
  auto request = engine.load_of(chain);
  request.layers = *load;
  auto ticket = engine->async().load(request, patiently());
  ASSERT_TRUE(ticket) << ticket.error().text;
  for (uint32_t layer = 0; layer < device_layers; ++layer)
    ASSERT_TRUE(layers.ring->wait(*load, layer, patiently()));
  EXPECT_TRUE(engine.holds(engine.memory().read(), chain));
  EXPECT_TRUE(layers.ring->end(*load, ticket->wait(patiently())));
}

TEST_P(LayerRing, ASlotIsUsedAgainOnlyAfterItsLoadAndItsWaiters) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), 8);
  engine_ring layers(engine, 3);
  auto chain = chain_of(1, 8);
  engine.store(chain);
  auto refused = [&](const std::string& why) {
    auto next = layers.ring->begin();
    return !next && next.error().code == errc::busy && next.error().text.find(why) != std::string::npos;
  };
  std::vector<client::layered_load> loads;
  for (int i = 0; i < 3; ++i)
    loads.push_back(layers.ring->begin().value());
  EXPECT_TRUE(refused("has not ended"));
  auto request = engine.load_of(chain);
  request.layers = loads[0];
  ASSERT_TRUE(engine->load(request, patiently())); // ends the load
  EXPECT_TRUE(refused("waiters have not passed"));
  engine_stream stream(engine.memory(), layers.memory);
  compute(stream, engine, loads[0], chain.size());
  stream.finish();
  auto again = layers.ring->begin();
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(again->slot, loads[0].slot);
  EXPECT_FALSE(layers.ring->arrived(*again, 0)) << "an old generation counts as a new one";
}

TEST_P(LayerRing, ALoadThatFailsLetsItsStreamsGo) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), 8);
  engine_ring layers(engine, 3);
  auto chain = chain_of(1, 8);
  engine.store(std::vector<digest>(chain.begin(), chain.begin() + 5));
  engine_stream stream(engine.memory(), layers.memory);
  auto load = layers.ring->begin();
  compute(stream, engine, *load, chain.size());
  auto request = engine.load_of(chain);
  request.layers = *load;
  auto loaded = engine->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 5U) << "the answer says that the layers are not whole";
  stream.finish();
  // Then a load that failed at the device's end.
  engine.store(chain);
  load = layers.ring->begin();
  compute(stream, engine, *load, chain.size());
  ::kill(device_of(*engine).pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return device_of(*engine).pid == 0; }));
  request.layers = *load;
  loaded = engine->load(request, patiently());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::gone) << loaded.error().text;
  stream.finish();
  auto next = layers.ring->begin();
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, errc::gone) << "the device may write late";
  EXPECT_TRUE(engine.region().unregister(patiently()));
  EXPECT_TRUE(layers.page.unregister(patiently()));
  engine.region() = engine->register_device_region(engine.memory().shared(), patiently()).value();
  layers.page =
      engine->register_generations(layers.memory, engine.memory().shared().device, patiently()).value();
  layers.ring->restart();
  load = layers.ring->begin();
  ASSERT_TRUE(load) << load.error().text;
  compute(stream, engine, *load, chain.size());
  request.layers = *load;
  ASSERT_TRUE(engine->load(request, patiently()));
  EXPECT_TRUE(stream.finish() == engine.all_layers_of(chain));
}

TEST_P(LayerRing, OfADeadClientIsUnmapped) {
  gpu_daemon daemon;
  tester witness(daemon.socket(), "witness");
  engine_memory memory(GetParam(), layer_bytes);
  auto device = memory.shared().device;
  {
    test::child_process child([&](const test::child_voice& voice) { // a forked process has no driver
      tester client(daemon.socket(), "doomed");
      auto page_memory = client::region::create("generations", 4096).value();
      auto page = client->register_generations(page_memory, device, patiently());
      voice.say(page ? 's' : 'f');
      for (;;)
        ::pause();
      return 0;
    });
    ASSERT_EQ(child.await_word(), 's');
    EXPECT_EQ(device_of(witness).regions, 1U);
    child.kill();
  }
  EXPECT_TRUE(eventually([&] { return device_of(witness).regions == 0; }));
}

TEST_P(LayerRing, WrongGenerationsAreRefused) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), 8);
  auto chain = chain_of(1, 8);
  engine.store(chain);
  auto memory = client::region::create("generations", 4096).value();
  auto page = engine->register_generations(memory, engine.memory().shared().device, patiently()).value();
  auto plain = engine->register_region(memory, patiently()).value();
  auto refused = [&](const client::registered_region& at, const client::registered_region* into,
                     uint32_t slot = 0) {
    auto ring = client::layer_ring::make(memory, at, {.offset = 4096 - 24, .layers = 1}).value();
    auto load = ring->begin();
    while (load->slot != slot)
      load = ring->begin();
    auto request = engine.load_of(chain);
    request.region = into;
    request.layers = *load;
    auto loaded = engine->load(request, patiently());
    EXPECT_TRUE(ring->arrived(*load, 0)) << "a refused load raises its counters as well";
    return !loaded && loaded.error().code == errc::bad_request;
  };
  EXPECT_TRUE(refused(plain, &engine.region())) << "no page of generations";
  EXPECT_TRUE(refused(page, &plain)) << "into host memory";
  EXPECT_TRUE(refused(page, &engine.region(), 2)) << "four layers, and the page ends behind two";
  EXPECT_FALSE(client::layer_ring::make(memory, page, {.offset = 4096 - 8}));
  EXPECT_FALSE(client::layer_ring::make(memory, page, {.offset = 2}));
  EXPECT_FALSE(client::layer_ring::make(memory, page, {.loads = 2}));
  EXPECT_FALSE(client::layer_ring::make(memory, page, {.layers = 0}));
  // A page that is too large, and one of no device.
  auto large = client::region::create("large", client::layer_ring::bytes_max + 4096).value();
  EXPECT_FALSE(engine->register_generations(large, engine.memory().shared().device, patiently()));
  EXPECT_FALSE(engine->register_generations(memory, "a GPU", patiently()));
  EXPECT_EQ(device_of(*engine).regions, 2U);
}

TEST_P(LayerRing, APageOfAnotherDeviceIsRefused) {
  if (test::sanitized("thread"))
    GTEST_SKIP() << "the simulated driver of another build is not run under ThreadSanitizer";
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), 8);
  auto chain = chain_of(1, 8);
  engine.store(chain);
  engine_memory elsewhere(GetParam() == device_kind::host ? device_kind::cuda_handle : device_kind::host,
                          4096);
  auto memory = client::region::create("generations", 4096).value();
  auto own = engine->register_generations(memory, engine.memory().shared().device, patiently()).value();
  auto page = engine->register_generations(memory, elsewhere.shared().device, patiently());
  ASSERT_TRUE(page) << page.error().text;
  auto ring = client::layer_ring::make(memory, *page, {.layers = device_layers}).value();
  auto load = ring->begin();
  auto request = engine.load_of(chain);
  request.layers = *load;
  auto loaded = engine->load(request, patiently());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::bad_request) << loaded.error().text;
}

TEST_P(LayerRing, LayersOfWhichNothingIsCopiedHaveTheirGenerationsToo) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), 8);
  engine_ring layers(engine, 3);
  engine_stream stream(engine.memory(), layers.memory);
  auto chain = chain_of(1, 8);
  engine.store(chain);
  for (uint32_t copied :
       {0U, 1U, device_layers - 1}) { // the first layers are loaded; of the others the engine has all tokens
    SCOPED_TRACE(copied);
    auto load = layers.ring->begin();
    ASSERT_TRUE(load) << load.error().text;
    for (uint32_t layer = 0; layer < device_layers; ++layer)
      stream.wait(load->layer(layer));
    stream.write(load->passed());
    auto found = (*engine).lookup(chain, true);
    auto request = engine.load_of(chain);
    std::vector<client::run> runs(request.runs.begin(), request.runs.end());
    for (size_t i = 0; i < runs.size(); ++i)
      if (i % device_layers >= copied)
        runs[i].offset = client::run::skipped;
    request.runs = runs;
    request.lease = found.held.id();
    request.layers = *load;
    auto ticket = engine->async().load(request, patiently());
    ASSERT_TRUE(ticket) << ticket.error().text;
    stream.finish(); // finishes without the answer
    auto loaded = layers.ring->end(*load, ticket->wait(patiently()));
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks, chain.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Of, LayerRing, ::testing::Values(device_kind::host, device_kind::cuda_handle),
                         [](const auto& each) { return to_string(each.param); });

} // namespace
} // namespace terrace::e2e
