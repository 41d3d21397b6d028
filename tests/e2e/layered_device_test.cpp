// An engine's work with its memory of a device: layers from host memory and from disk, stores layer by layer,
// several pools at once, states of which only the last are needed, and the end of its requests. On the
// simulated driver and on the device in host memory.
#include "client/arrivals.hpp"
#include "gpu/generation_page.hpp"
#include "layered_device.hpp"
#include "tests/support/child_process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace terrace::e2e {
namespace layered_device_test {

constexpr uint32_t chunks = 8;

class LayeredDevice : public device_fixture {
 protected:
  static daemon_options with_disk() {
    auto options = gpu_daemon::options_of("");
    options.disk_bytes = 96 * mebibyte;
    return options;
  }
  /// Leaves the chain only on disk.
  static void put_on_disk(daemon_under_test& daemon, const std::vector<digest>& chain) {
    ASSERT_TRUE(daemon.await_log("joined"));
    {
      pool_client client(daemon.socket(), four_layers());
      ASSERT_TRUE(client.store(chain, {0, chunks}, {0, 1, 2, 3}));
    }
    ASSERT_EQ(daemon.terminate(), 0);
  }
  static void start_again(daemon_under_test& daemon) {
    daemon.start();
    ASSERT_TRUE(daemon.await_log("32 objects found"));
  }
  static void damage(const std::string& file, const digest& content) {
    std::vector<uint8_t> object(layer_bytes);
    fill_content(content, object);
    auto all = read_file(file);
    auto at = std::search(all.begin(), all.end(), object.begin(), object.begin() + 4096,
                          [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
    ASSERT_NE(at, all.end());
    unique_fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::pwrite(fd.get(), "damage", 6, at - all.begin() + 100), 6);
  }
};

TEST_P(LayeredDevice, LayersOnDiskAreReadOneAfterTheOther) {
  daemon_under_test daemon(with_disk());
  auto chain = chain_of(1, chunks);
  put_on_disk(daemon, chain);
  start_again(daemon);
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  engine_ring layers(engine, 3);
  engine_stream stream(engine.memory(), layers.memory);
  auto load = layers.ring->begin();
  std::vector<uint8_t> expected;
  for (uint32_t layer = 0; layer < device_layers; ++layer) {
    stream.wait(load->layer(layer));
    stream.read(engine.place(layer, 0), chunks * layer_bytes);
    auto one = engine.layer_of(chain, layer);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  stream.write(load->passed());
  auto found = (*engine).lookup(chain, true);
  ASSERT_EQ(found.found_chunks, chunks);
  auto request = engine.load_of(chain);
  request.lease = found.held.id();
  request.layers = *load;
  auto loaded = engine->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, chunks);
  EXPECT_EQ(loaded->bytes_by_tier.at(static_cast<size_t>(tier_kind::disk)), 4 * chunks * layer_bytes);
  EXPECT_TRUE(stream.finish() == expected);
}

TEST_P(LayeredDevice, AChunkThatIsLostOnTheWayEndsTheLayersThatFollow) {
  daemon_under_test daemon(with_disk());
  auto chain = chain_of(1, chunks);
  put_on_disk(daemon, chain);
  damage(daemon.state() + "/terrace.extents", content_of(chain[5], 1));
  start_again(daemon);
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto memory = client::region::create("counters", 4096).value();
  auto counters = engine->register_region(memory, patiently()).value();
  client::arrivals arrived(memory, counters, 0, device_layers);
  auto found = (*engine).lookup(chain, true);
  ASSERT_EQ(found.found_chunks, chunks);
  auto request = engine.load_of(chain);
  request.lease = found.held.id();
  request.progress = &arrived;
  auto loaded = engine->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 5U);
  ASSERT_TRUE(loaded->missing);
  EXPECT_EQ(loaded->missing->chunk, 5U);
  EXPECT_EQ(loaded->missing->pool, 1U);
  EXPECT_TRUE(loaded->missing->damaged);
  EXPECT_EQ(arrived.chunks(0), chunks) << "all of the first layer came before anything of the second";
  for (uint32_t layer : {1U, 2U, 3U})
    EXPECT_EQ(arrived.chunks(layer), 5U) << "layer " << layer;
  EXPECT_TRUE(engine.holds(engine.memory().read(), {chain.begin(), chain.begin() + 5}));
}

TEST_P(LayeredDevice, AnEngineStoresLayerByLayer) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto chain = chain_of(1, chunks);
  auto page = gpu::generation_page::make(device_layers).value();
  auto counters = engine->register_region(page.descriptor(), page.memory().size(), patiently()).value();
  auto bell = engine->bell(patiently()).value();
  std::vector<client::ticket<client::store_result>> stores;
  for (uint8_t layer = 0; layer < device_layers; ++layer) {
    auto request = (*engine).store_of(chain);
    std::vector<uint8_t> pools{layer};
    request.region = &engine.region();
    request.pools = pools;
    request.runs = engine.runs({0, chunks}, pools);
    request.after = client::generation{&counters, layer * sizeof(uint32_t), 1};
    stores.push_back(engine->async().store(request, patiently()).value());
  }
  std::vector<uint8_t> bytes(engine.memory().bytes());
  for (uint32_t layer = 0; layer < device_layers; ++layer) { // the engine computes
    EXPECT_EQ((*engine).lookup(chain).found_chunks, 0U) << "layers are missing";
    auto one = engine.layer_of(chain, layer);
    std::copy(one.begin(), one.end(), bytes.begin() + static_cast<ptrdiff_t>(engine.place(layer, 0)));
    engine.memory().write(bytes);
    page.write({layer, 1});
    bell.ring();
    auto stored = stores[layer].wait(patiently());
    ASSERT_TRUE(stored) << stored.error().text;
    EXPECT_EQ(stored->stored_chunks, chunks);
  }
  EXPECT_EQ((*engine).lookup(chain).found_chunks, chunks);
  EXPECT_EQ(engine.host().load_and_check(chain, {0, chunks}, {0, 1, 2, 3}), chunks);
}

TEST_P(LayeredDevice, SeveralPoolsAreStoredTogetherOrNotAtAll) {
  auto options = gpu_daemon::options_of("");
  options.host_bytes = 4 * mebibyte;
  daemon_under_test daemon(options);
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto chain = chain_of(1, chunks);
  std::vector<uint8_t> bytes(engine.memory().bytes());
  for (uint32_t layer = 0; layer < device_layers; ++layer) {
    auto one = engine.layer_of(chain, layer);
    std::copy(one.begin(), one.end(), bytes.begin() + static_cast<ptrdiff_t>(engine.place(layer, 0)));
  }
  engine.memory().write(bytes);
  std::vector<uint8_t> all{0, 1, 2, 3};
  auto store = [&] {
    auto request = (*engine).store_of(chain);
    request.region = &engine.region();
    request.runs = engine.runs({0, chunks}, all);
    return engine->store(request, patiently());
  };
  {
    std::vector<client::lease>
        held; // chunks are held until there is no room for another one, though there may be for an object
    for (uint64_t seed = 100;; ++seed) {
      auto one = chain_of(seed, 1);
      if (!engine.host().store(one, {0, 1}, all))
        break;
      auto found = (*engine).lookup(one, true);
      ASSERT_EQ(found.found_chunks, 1U);
      held.push_back(std::move(found.held));
    }
    ASSERT_GE(held.size(), 20U);
    auto before = (*engine).tier("host");
    auto stored = store();
    ASSERT_FALSE(stored);
    EXPECT_EQ(stored.error().code, errc::no_space) << stored.error().text;
    EXPECT_EQ((*engine).tier("host").objects, before.objects);
    for (uint8_t layer : all)
      EXPECT_EQ(engine.host().load_and_check(chain, {0, 1}, {layer}), 0U)
          << "layer " << int{layer} << " stays";
  }
  auto stored = store();
  EXPECT_TRUE(eventually([&] { return stored || (stored = store()); })) << stored.error().text;
  EXPECT_EQ(engine.host().load_and_check(chain, {0, chunks}, all), chunks);
}

/// Two layers of attention, and a state of which the last two of a prefix are needed.
client::space_spec hybrid_layers() {
  auto spec = test_space();
  spec.pools = {{.name = "kv.0", .object_bytes = layer_bytes},
                {.name = "kv.1", .object_bytes = layer_bytes},
                {.name = "state",
                 .object_bytes = layer_bytes,
                 .rule = client::hit_rule::trailing_chunks,
                 .trailing = 2}};
  return spec;
}

TEST_P(LayeredDevice, StatesAreLoadedExactlyWhereAHitNeedsThem) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks, hybrid_layers());
  auto chain = chain_of(1, chunks);
  ASSERT_TRUE(engine.host().store(chain, {0, chunks}, {0, 1}));
  ASSERT_TRUE(engine.host().store(chain, {4, 2}, {2}));
  auto found = (*engine).lookup(chain, true);
  ASSERT_EQ(found.found_chunks, 6U) << "the states of 4 and 5 are there";
  std::vector<uint8_t> expected(engine.memory().bytes(), 0x5a);
  engine.memory().write(expected);
  auto place = [&](uint32_t layer, uint32_t chunk) {
    fill_content(content_of(chain[chunk], layer),
                 std::span(expected).subspan(engine.place(layer, chunk), layer_bytes));
  };
  auto load = [&](client::chunk_range range, const std::vector<uint8_t>& pools) {
    auto request = (*engine).load_of(chain, range);
    request.lease = found.held.id();
    request.region = &engine.region();
    request.pools = pools;
    request.runs = engine.runs(range, pools);
    auto loaded = engine->load(request, patiently());
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks, range.count);
    for (uint32_t chunk = range.first; chunk < range.first + range.count; ++chunk)
      for (uint8_t pool : pools)
        place(pool, chunk);
  };
  load({0, 6}, {0, 1});
  load({4, 2}, {2});
  EXPECT_TRUE(engine.memory().read() == expected) << "and nothing else was written";
}

TEST_P(LayeredDevice, ALoadLeavesTheFirstTokensAlone) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto chain = chain_of(1, chunks);
  engine.store(chain);
  std::vector<uint8_t> expected(engine.memory().bytes(), 0x5a);
  engine.memory().write(expected);
  // The engine has a chunk and 5 of the 16 tokens of the next. In each layer this is K and V of 16 tokens of
  // 1 KiB.
  constexpr uint64_t token = 1024, had = 5, tokens = 16;
  std::vector<client::run> runs;
  std::vector<uint32_t> per_object;
  for (uint32_t chunk = 1; chunk < chunks; ++chunk)
    for (uint32_t layer = 0; layer < device_layers; ++layer) {
      uint64_t at = engine.place(layer, chunk);
      std::vector<uint8_t> object(layer_bytes);
      fill_content(content_of(chain[chunk], layer), object);
      if (chunk > 1) {
        runs.push_back({.offset = at, .bytes = layer_bytes});
        per_object.push_back(1);
        std::copy(object.begin(), object.end(), expected.begin() + static_cast<ptrdiff_t>(at));
        continue;
      }
      for (uint64_t half : {uint64_t{0}, tokens * token}) {
        runs.push_back({.offset = client::run::skipped, .bytes = had * token});
        runs.push_back({.offset = at + half + had * token, .bytes = (tokens - had) * token});
        std::copy_n(object.begin() + static_cast<ptrdiff_t>(half + had * token), (tokens - had) * token,
                    expected.begin() + static_cast<ptrdiff_t>(at + half + had * token));
      }
      per_object.push_back(4);
    }
  auto request = (*engine).load_of(chain, {1, chunks - 1});
  request.region = &engine.region();
  request.runs = runs;
  request.runs_per_object = per_object;
  auto loaded = engine->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, chunks - 1);
  EXPECT_TRUE(engine.memory().read() == expected);
  // A load into host memory works as well, with an object that is skipped as a whole; a store has all of its
  // bytes.
  std::vector<client::run> pieces{{.offset = client::run::skipped, .bytes = layer_bytes},
                                  {.offset = 0, .bytes = layer_bytes}};
  std::vector<uint8_t> pools{0, 1};
  auto into_host = (*engine).load_of(chain, {0, 1});
  into_host.pools = pools;
  into_host.runs = pieces;
  ASSERT_TRUE(engine->load(into_host, patiently()));
  EXPECT_TRUE(has_content(content_of(chain[0], 1), (*engine).memory().bytes().first(layer_bytes)));
  auto store = (*engine).store_of(chain_of(2, 1));
  auto other = chain_of(2, 1);
  store = (*engine).store_of(other);
  store.pools = pools;
  store.runs = pieces;
  auto stored = engine->store(store, patiently());
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, errc::bad_request) << stored.error().text;
}

TEST_P(LayeredDevice, RequestsThatHaveEndedTouchNothing) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto chain = chain_of(1, chunks);
  engine.store(chain);
  std::vector<client::ticket<client::load_result>> loads;
  for (int i = 0; i < 12; ++i)
    loads.push_back(engine->async().load(engine.load_of(chain), patiently()).value());
  for (size_t i = 0; i < loads.size(); i += 2) // these requests are preempted
    EXPECT_TRUE(loads[i].cancel(patiently()));
  for (auto& load : loads) {
    auto ended = load.wait(patiently());
    EXPECT_TRUE(ended || ended.error().code == errc::cancelled) << ended.error().text;
  }
  std::vector<uint8_t> others(engine.memory().bytes(), 0x77);
  engine.memory().write(others);
  EXPECT_EQ((*engine).lookup(chain).found_chunks, chunks);
  EXPECT_TRUE(engine.memory().read() == others) << "a request that was answered has written";
  // Unregisters the region, too: afterwards its owner may free it.
  for (auto& load : loads)
    load = engine->async().load(engine.load_of(chain), patiently()).value();
  ASSERT_TRUE(engine.region().unregister(patiently()));
  engine.memory().write(others);
  for (auto& load : loads)
    EXPECT_TRUE(load.ready()) << "the region ended before its requests";
  EXPECT_TRUE(engine.memory().read() == others);
}

TEST_P(LayeredDevice, AStoreOfADeadClientWaitsNoLonger) {
  gpu_daemon daemon;
  tester witness(daemon.socket(), "witness");
  engine_memory mine(GetParam(), region_objects * object_bytes);
  auto shared = mine.shared();
  {
    test::child_process child([&](const test::child_voice& voice) { // a forked process has no driver
      tester client(daemon.socket(), "doomed");
      auto region = client->register_device_region(shared, patiently());
      auto page = gpu::generation_page::make(1).value();
      auto counters = client->register_region(page.descriptor(), page.memory().size(), patiently()).value();
      auto bell = client->bell(patiently());
      auto chain = chain_of(1, 4);
      auto request = client.store_of(chain);
      auto runs = interleaved(4);
      request.region = &*region;
      request.runs = runs;
      request.after = client::generation{&counters, 0, 1};
      auto waits = client->async().store(request, patiently());
      bool taken = device_of(client).regions == 1; // answered after the load
      voice.say(bell && waits && taken && !waits->ready() ? 's' : 'f');
      for (;;)
        ::pause();
      return 0;
    });
    ASSERT_EQ(child.await_word(), 's');
    EXPECT_EQ(device_of(witness).regions, 1U);
    child.kill();
  }
  EXPECT_TRUE(eventually([&] { return device_of(witness).regions == 0; }));
  EXPECT_TRUE(eventually([&] { return device_of(witness).pid == 0; })) << "nothing of it is left";
  EXPECT_EQ(device_of(witness).failures, 0U);
}

INSTANTIATE_TEST_SUITE_P(Of, LayeredDevice, ::testing::Values(device_kind::host, device_kind::cuda_handle),
                         [](const auto& each) { return to_string(each.param); });

// ---- faults of the driver ----

class LayeredFault : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test::sanitized("thread"))
      GTEST_SKIP() << "the simulated driver of another build is not run under ThreadSanitizer";
  }
  void TearDown() override { std::filesystem::remove(gpu_daemon::script()); }
};

TEST_F(LayeredFault, NoPoolStaysOfAStoreThatTheDeviceLoses) {
  SKIP_ON_REAL_DRIVER();
  gpu_daemon::faults("lose context");
  gpu_daemon daemon("deadline = \"1s\"\n");
  layered_engine engine(daemon.socket(), device_kind::cuda_handle, chunks);
  auto chain = chain_of(1, chunks);
  std::vector<uint8_t> all{0, 1, 2, 3};
  auto request = (*engine).store_of(chain);
  request.region = &engine.region();
  request.runs = engine.runs({0, chunks}, all);
  auto stored = engine->store(request, patiently());
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, errc::gone) << stored.error().text;
  for (uint8_t layer : all)
    EXPECT_EQ(engine.host().load_and_check(chain, {0, 1}, {layer}), 0U) << "layer " << int{layer};
  EXPECT_EQ((*engine).tier("host").objects, 0U);
}

TEST_F(LayeredFault, UnregisteringWaitsForACopyThatHangs) {
  SKIP_ON_REAL_DRIVER();
  gpu_daemon::faults("hang copies");
  gpu_daemon daemon("deadline = \"1s\"\n");
  layered_engine engine(daemon.socket(), device_kind::cuda_handle, chunks);
  auto chain = chain_of(1, chunks);
  engine.store(chain);
  auto load = engine->async().load(engine.load_of(chain), patiently()).value();
  EXPECT_NE(device_of(*engine).pid, 0);
  ASSERT_TRUE(engine.region().unregister(patiently()));
  EXPECT_EQ(device_of(*engine).pid, 0) << "it was answered while the copy could still run";
  auto lost = load.wait(patiently());
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, errc::gone) << lost.error().text;
}

} // namespace layered_device_test
} // namespace terrace::e2e
