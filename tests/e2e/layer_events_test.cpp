// Loads into memory of a GPU whose layers streams of the engine wait for with events of the GPU's process.
#include "client/layer_events.hpp"

#include "cuda_stream.hpp"
#include "layered_device.hpp"
#include "tests/support/child_process.hpp"

#include <csignal>
#include <cstring>
#include <future>
#include <thread>

#include <sys/socket.h>

namespace terrace::e2e {
namespace {

constexpr uint32_t chunks = 8;
/// Bytes of a page for each event.
constexpr uint64_t event_bytes = sizeof(uint32_t) + sizeof(cuda::ipc_event_handle);

class LayerEvents : public device_fixture {
 protected:
  static client::layer_events_options options(layered_engine& engine) {
    return {.device = engine.memory().shared().device,
            .layers = engine.layers(),
            .driver = test::driver_library()};
  }
  static std::unique_ptr<client::layer_events> events_of(layered_engine& engine) {
    auto made = client::layer_events::make(*engine.operator->(), options(engine), patiently());
    if (!made)
      throw std::runtime_error(made.error().text);
    return std::move(*made);
  }
  /// Does an engine's work for a load, on a thread of its own: reads each layer once it has arrived.
  static std::thread compute(client::layer_events& events, cuda_stream& on, const layered_engine& engine,
                             const client::layered_load& load) {
    std::promise<void> began;
    auto begins = began.get_future();
    std::thread thread([&events, &on, &engine, load, began = std::move(began)]() mutable {
      began.set_value();
      for (uint32_t layer = 0; layer < engine.layers(); ++layer) {
        auto told = events.wait(load, layer, on.handle(), patiently());
        EXPECT_TRUE(told) << told.error().text;
        on.read(engine.place(layer, 0), chunks * layer_bytes);
      }
      EXPECT_TRUE(events.pass(load, on.handle()));
    });
    begins.wait();
    return thread;
  }
  static client::load_request load_of(layered_engine& engine, const std::vector<digest>& chain,
                                      const client::layered_load& load) {
    auto request = engine.load_of(chain);
    request.layers = load;
    return request;
  }
  static bool refused(client::layer_events& events, errc code, const std::string& why) {
    auto next = events.begin();
    EXPECT_FALSE(next);
    return !next && next.error().code == code && next.error().text.find(why) != std::string::npos;
  }
  /// Makes a load that succeeds, and compares every byte.
  static void expect_load(layered_engine& engine, client::layer_events& events, cuda_stream& stream,
                          const std::vector<digest>& chain) {
    auto load = events.begin();
    ASSERT_TRUE(load) << load.error().text;
    auto thread = compute(events, stream, engine, *load);
    auto loaded = events.end(*load, engine->load(load_of(engine, chain, *load), patiently()));
    thread.join();
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks, chain.size());
    EXPECT_TRUE(stream.finish() == engine.all_layers_of(chain));
  }
};

/// A page with events, made with the protocol alone.
struct raw_events {
  raw_events(layered_engine& of, const std::shared_ptr<const cuda::context>& context, uint32_t count)
      : memory(client::region::create("events", count * event_bytes).value()),
        page(of->register_generations(memory, of.memory().shared().device, patiently(), count).value()) {
    for (uint32_t i = 0; i < count; ++i) {
      cuda::ipc_event_handle handle;
      std::memcpy(&handle, memory.data() + memory.size() - (count - i) * sizeof handle, sizeof handle);
      opened.push_back(cuda::event::open(context, handle).value());
    }
  }
  client::region memory;
  client::registered_region page;
  std::vector<cuda::event> opened;
};

TEST_P(LayerEvents, AWaiterThatComesFirstNeverReadsOldBytes) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto events = events_of(engine);
  cuda_stream stream(engine.memory());
  constexpr uint64_t loads = 7; // more loads than there are slots
  for (uint64_t seed = 1; seed <= loads; ++seed)
    engine.store(chain_of(seed, chunks));
  for (uint64_t seed = 1; seed <= loads; ++seed) {
    auto chain = chain_of(seed, chunks);
    auto load = events->begin();
    ASSERT_TRUE(load) << load.error().text;
    auto waits = compute(*events, stream, engine, *load); // before the daemon has received the load
    auto found = (*engine).lookup(chain, true);
    auto request = load_of(engine, chain, *load);
    request.lease = found.held.id();
    auto ticket = engine->async().load(request, patiently());
    ASSERT_TRUE(ticket) << ticket.error().text;
    waits.join(); // ends without the answer
    EXPECT_TRUE(stream.finish() == engine.all_layers_of(chain)) << "load " << seed;
    auto loaded = events->end(*load, ticket->wait(patiently()));
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks, chain.size());
  }
}

// Shows the reason for the test above: an event that was not recorded yet holds nobody up.
TEST_P(LayerEvents, AnEventAloneLetsOldBytesBeRead) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  cuda_stream stream(engine.memory());
  auto chain = chain_of(1, chunks);
  engine.store(chain);
  engine.memory().write(std::vector<uint8_t>(engine.memory().bytes(), 0x5a));
  raw_events events(engine, stream.context(), 3 * (device_layers + 1));
  auto ring = client::layer_ring::make(events.memory, events.page, {.layers = device_layers}).value();
  auto load = ring->begin().value();
  auto read_last = [&] {
    EXPECT_TRUE(events.opened[device_layers - 1].block(*stream));
    stream.read(engine.place(device_layers - 1, 0), chunks * layer_bytes);
    return stream.finish();
  };
  EXPECT_TRUE(read_last() == std::vector<uint8_t>(chunks * layer_bytes, 0x5a));
  auto ticket = engine->async().load(load_of(engine, chain, load), patiently());
  ASSERT_TRUE(ticket) << ticket.error().text;
  ASSERT_TRUE(ring->wait(load, device_layers - 1, patiently()));
  EXPECT_TRUE(read_last() == engine.layer_of(chain, device_layers - 1));
  EXPECT_TRUE(ring->end(load, ticket->wait(patiently())));
}

TEST_P(LayerEvents, ASlotIsUsedAgainOnlyAfterItsLoadAndItsWaiters) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto events = events_of(engine);
  cuda_stream stream(engine.memory());
  auto chain = chain_of(1, chunks);
  engine.store(chain);
  std::vector<client::layered_load> loads;
  for (int i = 0; i < 3; ++i)
    loads.push_back(events->begin().value());
  EXPECT_TRUE(refused(*events, errc::busy, "has not ended"));
  ASSERT_TRUE(events->end(loads[0], engine->load(load_of(engine, chain, loads[0]), patiently())));
  EXPECT_TRUE(refused(*events, errc::busy, "waiters have not passed"));
  stream.hold();
  ASSERT_TRUE(events->wait(loads[0], 0, stream.handle(), patiently()));
  ASSERT_TRUE(events->pass(loads[0], stream.handle()));
  EXPECT_TRUE(refused(*events, errc::busy, "waiters have not passed"));
  stream.release();
  stream.finish();
  auto again = events->begin();
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(again->slot, loads[0].slot);
  auto early = events->wait(*again, 0, stream.handle(), client::within(std::chrono::milliseconds(1)));
  ASSERT_FALSE(early) << "an old record counts as a new one";
  EXPECT_EQ(early.error().code, errc::deadline);
  events->pass(*again); // nobody waits for it
  ASSERT_TRUE(events->end(*again, engine->load(load_of(engine, chain, *again), patiently())));
}

TEST_P(LayerEvents, ALoadThatFailsLetsItsWaitersGo) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto events = events_of(engine);
  cuda_stream stream(engine.memory());
  auto chain = chain_of(1, chunks);
  engine.store(std::vector<digest>(chain.begin(), chain.begin() + 5));
  auto load = events->begin().value();
  auto waits = compute(*events, stream, engine, load);
  auto loaded = events->end(load, engine->load(load_of(engine, chain, load), patiently()));
  waits.join();
  stream.finish();
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 5U) << "the answer says that the layers are not whole";
  // Then a load that the daemon refuses.
  load = events->begin().value();
  waits = compute(*events, stream, engine, load);
  auto request = load_of(engine, chain, load);
  request.runs = request.runs.first(3);
  loaded = events->end(load, engine->load(request, patiently()));
  waits.join();
  stream.finish();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::bad_request);
  engine.store(chain);
  expect_load(engine, *events, stream, chain);
}

TEST_P(LayerEvents, AProcessThatIsKilledWhileItCopiesLetsWaitersGo) {
  SKIP_ON_REAL_DRIVER();
  gpu_daemon::faults("hang copies");
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto events = events_of(engine);
  cuda_stream stream(engine.memory());
  auto chain = chain_of(1, chunks);
  engine.store(chain);
  auto load = events->begin().value();
  auto waits = compute(*events, stream, engine, load);
  auto ticket = engine->async().load(load_of(engine, chain, load), patiently());
  ASSERT_TRUE(ticket);
  gpu_daemon::faults("");
  ::kill(device_of(*engine).pid, SIGKILL);
  auto loaded = events->end(load, ticket->wait(patiently()));
  waits.join();
  stream.finish();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::gone) << loaded.error().text;
  EXPECT_TRUE(refused(*events, errc::gone, "restart it"));
  EXPECT_TRUE(engine.region().unregister(patiently()));
  engine.region() = engine->register_device_region(engine.memory().shared(), patiently()).value();
  auto restarted = events->restart(patiently());
  ASSERT_TRUE(restarted) << restarted.error().text;
  expect_load(engine, *events, stream, chain);
}

TEST_P(LayerEvents, AreNotRestartedUnderAStreamThatWaits) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto events = events_of(engine);
  cuda_stream stream(engine.memory());
  auto chain = chain_of(1, chunks);
  engine.store(chain);
  auto load = events->begin().value();
  ASSERT_TRUE(events->end(load, engine->load(load_of(engine, chain, load), patiently())));
  stream.hold();
  ASSERT_TRUE(events->pass(load, stream.handle()));
  auto restarted = events->restart(patiently());
  ASSERT_FALSE(restarted);
  EXPECT_EQ(restarted.error().code, errc::busy) << restarted.error().text;
  stream.release();
  stream.finish();
  EXPECT_TRUE(events->restart(patiently()));
  expect_load(engine, *events, stream, chain);
}

TEST_P(LayerEvents, OfALivingClientOutliveItsConnection) {
  gpu_daemon daemon;
  layered_engine witness(daemon.socket(), GetParam(), 1); // keeps the process
  auto regions = [&] { return device_of(*witness).regions - 1; };
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto events = events_of(engine);
  cuda_stream stream(engine.memory());
  auto chain = chain_of(1, chunks);
  engine.store(chain);
  expect_load(engine, *events, stream, chain);
  auto pid = device_of(*witness).pid;
  ::shutdown(engine->descriptor(), SHUT_RDWR);
  ASSERT_TRUE(daemon.await_log("closed its socket"));
  ASSERT_TRUE(eventually([&] { return regions() == 1; })) << "all but the page have ended";
  EXPECT_FALSE(engine->admin().status(patiently()));
  ASSERT_TRUE(engine->reconnect(patiently())); // it still has them open, so it confirms nothing
  EXPECT_EQ(regions(), 3U);
  EXPECT_TRUE(refused(*events, errc::gone, "registered again"));
  ASSERT_TRUE(events->restart(patiently()));
  expect_load(engine, *events, stream, chain);
  ::shutdown(engine->descriptor(), SHUT_RDWR);
  EXPECT_FALSE(engine->admin().status(patiently()));
  events.reset();
  ASSERT_TRUE(engine->reconnect(patiently())); // confirms both
  EXPECT_TRUE(eventually([&] { return regions() == 1; })) << "the engine's memory alone";
  EXPECT_EQ(device_of(*witness).pid, pid) << "the driver found nothing wrong";
}

TEST_P(LayerEvents, OfADeadClientEnd) {
  gpu_daemon daemon;
  tester witness(daemon.socket(), "witness");
  engine_memory memory(GetParam(), layer_bytes);
  auto device = memory.shared().device;
  test::child_process child([&](const test::child_voice& voice) { // a forked process has no driver
    tester client(daemon.socket(), "doomed");
    auto page_memory = client::region::create("generations", 4096).value();
    auto page = client->register_generations(page_memory, device, patiently(), 16);
    ::shutdown(client->descriptor(), SHUT_RDWR);
    voice.say(page ? 's' : 'f');
    voice.stay();
    return 0;
  });
  ASSERT_EQ(child.await_word(), 's');
  ASSERT_TRUE(daemon.await_log("closed its socket"));
  EXPECT_EQ(device_of(witness).regions, 1U);
  child.kill();
  EXPECT_TRUE(eventually([&] { return device_of(witness).regions == 0; }));
}

TEST_P(LayerEvents, AreClosedBeforeTheirPageIsUnregistered) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto events = events_of(engine);
  auto pid = device_of(*engine).pid;
  EXPECT_TRUE(events->close(patiently())) << "answered when the events have ended";
  EXPECT_EQ(device_of(*engine).regions, 1U);
  EXPECT_TRUE(refused(*events, errc::gone, "was unregistered"));
  EXPECT_TRUE(events->close(patiently())) << "once is enough";
  ASSERT_TRUE(events->restart(patiently()));
  EXPECT_EQ(device_of(*engine).regions, 2U);
  events.reset();
  EXPECT_TRUE(eventually([&] { return device_of(*engine).regions == 1; }));
  EXPECT_EQ(device_of(*engine).pid, pid);
  if (test::on_real_driver())
    return; // there the behaviour is undefined
  // A client that confirms and still has them open: the simulated driver notices it, and ends the process.
  cuda_stream stream(engine.memory());
  raw_events open(engine, stream.context(), 4);
  EXPECT_TRUE(open.page.unregister(patiently()));
  EXPECT_TRUE(eventually([&] { return device_of(*engine).pid == 0; }));
}

TEST_P(LayerEvents, ServeWithoutMemoryOperationsOfStreams) {
  SKIP_ON_REAL_DRIVER();
  gpu_daemon::faults("lack stream_memory_ops");
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto chain = chain_of(1, chunks);
  engine.store(chain);
  auto memory = client::region::create("generations", 4096).value();
  auto page = engine->register_generations(memory, engine.memory().shared().device, patiently());
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, errc::unsupported) << page.error().text;
  auto events = events_of(engine);
  cuda_stream stream(engine.memory());
  expect_load(engine, *events, stream, chain);
}

TEST_P(LayerEvents, WrongOnesAreRefused) {
  gpu_daemon daemon;
  layered_engine engine(daemon.socket(), GetParam(), chunks);
  auto chain = chain_of(1, chunks);
  engine.store(chain);
  auto device = engine.memory().shared().device;
  auto memory = client::region::create("events", 4096).value();
  auto registered = [&](const std::string& of, uint32_t events) {
    auto page = engine->register_generations(memory, of, patiently(), events);
    return page ? errc::ok : page.error().code;
  };
  EXPECT_EQ(registered(device, 61), errc::bad_request) << "more than there is room for";
  auto made = [&](const client::layer_events_options& wanted) {
    auto all = client::layer_events::make(*engine.operator->(), wanted, patiently());
    return all ? errc::ok : all.error().code;
  };
  auto fine = options(engine);
  auto wrong = fine;
  wrong.loads = 2;
  EXPECT_EQ(made(wrong), errc::bad_request);
  wrong = fine;
  wrong.layers = 0;
  EXPECT_EQ(made(wrong), errc::bad_request);
  wrong.layers = UINT32_MAX;
  EXPECT_EQ(made(wrong), errc::bad_request);
  wrong = fine;
  wrong.device = "a GPU";
  EXPECT_EQ(made(wrong), errc::bad_request);
  wrong.device = "GPU-00000000-0000-0000-0000-000000000000";
  EXPECT_EQ(made(wrong), errc::not_found);
  wrong = fine;
  wrong.driver = "libnone.so";
  EXPECT_EQ(made(wrong), errc::unsupported);
  if (!test::on_real_driver()) { // a real driver has many more
    wrong = fine;
    wrong.loads = 100;
    EXPECT_NE(made(wrong), errc::ok);
    EXPECT_TRUE(eventually([&] { return device_of(*engine).regions == 1; }))
        << "those it had made have ended";
  }
  // A load of four layers, and events for three of them.
  auto page = engine->register_generations(memory, device, patiently(), device_layers - 1).value();
  auto ring = client::layer_ring::make(memory, page, {.layers = device_layers}).value();
  auto loaded = engine->load(load_of(engine, chain, ring->begin().value()), patiently());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, errc::bad_request) << loaded.error().text;
  EXPECT_EQ(registered("host", 4), errc::unsupported);
}

INSTANTIATE_TEST_SUITE_P(Of, LayerEvents,
                         ::testing::Values(device_kind::cuda_handle, device_kind::cuda_descriptor),
                         [](const auto& each) { return to_string(each.param); });

} // namespace
} // namespace terrace::e2e
