// Loads and stores between host memory and memory of a device: the simulated driver's GPU, and the device in
// host memory.
#include "client/arrivals.hpp"
#include "gpu/generation_page.hpp"
#include "gpu_daemon.hpp"
#include "tests/support/child_process.hpp"

#include <algorithm>
#include <csignal>

namespace terrace::e2e {
namespace {

class DeviceRegion : public device_fixture {
 protected:
  engine_memory memory() { return {GetParam(), region_objects * object_bytes}; }
};

TEST_P(DeviceRegion, WhatIsStoredFromOneIsLoadedIntoAnotherByteForByte) {
  gpu_daemon daemon;
  tester client(daemon.socket());
  auto from = memory(), into = memory();
  auto first = client->register_device_region(from.shared(), patiently());
  ASSERT_TRUE(first) << first.error().text;
  auto second = client->register_device_region(into.shared(), patiently());
  ASSERT_TRUE(second) << second.error().text;
  auto chain = chain_of(1, region_objects);
  from.write(laid_out(chain, interleaved(chain.size())));
  auto stored = store_from(client, *first, chain, interleaved(chain.size()));
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, chain.size());
  EXPECT_EQ(client.load_and_check(chain), chain.size()); // loads into host memory
  into.write(std::vector<uint8_t>(into.bytes(), 0x5a));
  auto loaded = load_into(client, *second, chain, backwards(chain.size()));
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, chain.size());
  EXPECT_TRUE(into.read() == laid_out(chain, backwards(chain.size())));
  // Then objects from host memory, in pieces among bytes that must not change.
  auto other = chain_of(2, 3);
  client.store(other);
  ASSERT_TRUE(load_into(client, *first, other, interleaved(other.size())));
  auto expected = laid_out(chain, interleaved(chain.size()));
  for (size_t i = 0; i < other.size(); ++i) {
    std::vector<uint8_t> object(object_bytes);
    fill_content(other[i], object);
    for (uint64_t piece = 0; piece < pieces; ++piece)
      std::memcpy(expected.data() + (piece * region_objects + i) * piece_bytes,
                  object.data() + piece * piece_bytes, piece_bytes);
  }
  EXPECT_TRUE(from.read() == expected);
  auto shown = device_of(client);
  EXPECT_EQ(shown.state, "ready");
  EXPECT_EQ(shown.regions, 2U);
  EXPECT_EQ(shown.region_bytes, 2 * region_objects * object_bytes);
  EXPECT_EQ(shown.stored_bytes, chain.size() * object_bytes);
  EXPECT_EQ(shown.loaded_bytes, (chain.size() + other.size()) * object_bytes);
  EXPECT_TRUE(first->unregister(patiently()));
  EXPECT_TRUE(second->unregister(patiently()));
  EXPECT_TRUE(eventually([&] { return device_of(client).pid == 0; })) << "the process outlives its regions";
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_P(DeviceRegion, AStoreWaitsForTheGenerationOfItsEngine) {
  gpu_daemon daemon;
  tester client(daemon.socket()), witness(daemon.socket(), "witness");
  auto from = memory();
  auto region = client->register_device_region(from.shared(), patiently());
  ASSERT_TRUE(region) << region.error().text;
  auto page = gpu::generation_page::make(16).value();
  auto counters = client->register_region(page.descriptor(), page.memory().size(), patiently());
  ASSERT_TRUE(counters) << counters.error().text;
  auto bell = client->bell(patiently());
  ASSERT_TRUE(bell) << bell.error().text;
  auto chain = chain_of(1, 4), given_up = chain_of(2, 4), free = chain_of(3, 4);
  std::vector<client::run> runs = interleaved(4);
  auto store_after = [&](const std::vector<digest>& what, uint64_t slot) {
    auto request = client.store_of(what);
    request.region = &*region;
    request.runs = runs;
    request.after = client::generation{&*counters, slot * sizeof(uint32_t), 7};
    return client->async().store(request, patiently());
  };
  auto waits = store_after(chain, 3);
  ASSERT_TRUE(waits);
  auto cancelled = store_after(given_up, 4);
  ASSERT_TRUE(cancelled);
  EXPECT_TRUE(cancelled->cancel(patiently()).value());
  auto ended = cancelled->wait(patiently());
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, errc::cancelled);
  // A store without `after` passes them.
  from.write(laid_out(free, runs));
  auto passed = store_from(client, *region, free, runs);
  ASSERT_TRUE(passed) << passed.error().text;
  EXPECT_EQ(witness.load_and_check(free), 4U);
  EXPECT_FALSE(waits->ready());
  EXPECT_EQ(witness.lookup(chain).found_chunks, 0U);
  from.write(laid_out(chain, runs));
  page.write({3, 6});
  bell->ring();
  EXPECT_EQ(witness.lookup(chain).found_chunks, 0U);
  EXPECT_FALSE(waits->ready());
  page.write({3, 7});
  bell->ring();
  auto stored = waits->wait(patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(stored->stored_chunks, 4U);
  EXPECT_EQ(witness.load_and_check(chain), 4U);
  EXPECT_EQ(witness.lookup(given_up).found_chunks, 0U);
  EXPECT_EQ(page.value(4), 0U) << "the daemon writes nothing there";
  EXPECT_TRUE(region->unregister(patiently()));
}

TEST_P(DeviceRegion, AsManyStoresWaitAtATimeAsThereAreCredits) {
  constexpr uint32_t most = 200;
  gpu_daemon daemon;
  tester client(daemon.socket());
  auto from = memory();
  auto region = client->register_device_region(from.shared(), patiently());
  ASSERT_TRUE(region) << region.error().text;
  auto page = gpu::generation_page::make(most).value();
  auto counters = client->register_region(page.descriptor(), page.memory().size(), patiently());
  ASSERT_TRUE(counters) << counters.error().text;
  auto bell = client->bell(patiently()).value();
  auto runs = interleaved(1);
  std::vector<std::vector<digest>> chains;
  std::vector<client::ticket<client::store_result>> waiting;
  for (uint64_t i = 0; i < most; ++i) {
    chains.push_back(chain_of(i + 1, 1));
    auto request = client.store_of(chains.back());
    request.region = &*region;
    request.runs = runs;
    request.after = client::generation{&*counters, i * sizeof(uint32_t), 1};
    waiting.push_back(client->async().store(request, patiently()).value());
  }
  ASSERT_TRUE(store_from(client, *region, chain_of(most + 1, 1), runs)) << "what waits holds nothing up";
  for (auto& each : waiting)
    EXPECT_FALSE(each.ready());
  // While they wait, memory of the device comes and goes, including a page that its process has registered.
  auto memory_of_page = client::region::create("generations", 4096).value();
  for (int i = 0; i < 3; ++i) {
    auto other = client->register_generations(memory_of_page, from.shared().device, patiently());
    ASSERT_TRUE(other) << other.error().text;
    ASSERT_TRUE(other->unregister(patiently()));
  }
  for (uint32_t i = 0; i < most; ++i)
    page.write({i, 1});
  bell.ring(); // one ring for all
  for (auto& each : waiting) {
    auto stored = each.wait(patiently());
    EXPECT_TRUE(stored) << stored.error().text;
  }
}

TEST_P(DeviceRegion, ALoadRaisesItsCounters) {
  gpu_daemon daemon;
  tester client(daemon.socket());
  auto into = memory();
  auto region = client->register_device_region(into.shared(), patiently());
  ASSERT_TRUE(region) << region.error().text;
  auto memory_of_counters = client::region::create("counters", 4096).value();
  auto counters = client->register_region(memory_of_counters, patiently()).value();
  client::arrivals arrived(memory_of_counters, counters, 0, 1);
  auto chain = chain_of(1, 4);
  client.store(chain);
  arrived.restart();
  auto request = client.load_of(chain);
  auto runs = interleaved(4);
  request.region = &*region;
  request.runs = runs;
  request.progress = &arrived;
  auto ticket = client->async().load(request, patiently());
  ASSERT_TRUE(ticket);
  ASSERT_TRUE(arrived.wait(0, 4, patiently()));
  auto bytes = into.read();
  for (size_t i = 0; i < chain.size(); ++i) {
    std::vector<uint8_t> object;
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      auto begin = bytes.begin() + static_cast<ptrdiff_t>(runs[i].offset + piece * runs[i].stride);
      object.insert(object.end(), begin, begin + static_cast<ptrdiff_t>(piece_bytes));
    }
    EXPECT_TRUE(has_content(chain[i], object)) << "object " << i << " was announced before it had arrived";
  }
  auto loaded = ticket->wait(patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(arrived.chunks(0), 4U);
}

TEST_P(DeviceRegion, ADeadClientsMappingsEnd) {
  gpu_daemon daemon;
  tester witness(daemon.socket(), "witness");
  auto mine = memory();
  auto shared = mine.shared();
  {
    test::child_process child([&](const test::child_voice& voice) { // a forked process has no driver
      tester client(daemon.socket(), "doomed");
      auto region = client->register_device_region(shared, patiently());
      auto chain = chain_of(1, 4);
      bool stored = region && store_from(client, *region, chain, interleaved(4));
      voice.say(stored ? 's' : 'f');
      for (;;)
        ::pause();
      return 0;
    });
    ASSERT_EQ(child.await_word(), 's');
    EXPECT_EQ(device_of(witness).regions, 1U);
    child.kill();
  }
  EXPECT_TRUE(eventually([&] { return device_of(witness).regions == 0; }));
  EXPECT_EQ(witness.lookup(chain_of(1, 4)).found_chunks, 4U);
}

TEST_P(DeviceRegion, AProcessThatDiesTakesItsRegionsAlone) {
  gpu_daemon daemon;
  tester client(daemon.socket());
  auto mine = memory();
  auto region = client->register_device_region(mine.shared(), patiently());
  ASSERT_TRUE(region) << region.error().text;
  auto chain = chain_of(1, 4);
  client.store(chain);
  ::kill(device_of(client).pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return device_of(client).pid == 0; }));
  EXPECT_EQ(device_of(client).state, "degraded");
  auto lost = load_into(client, *region, chain, interleaved(4));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, errc::gone) << lost.error().text;
  EXPECT_EQ(client.load_and_check(chain), 4U);
  EXPECT_TRUE(region->unregister(patiently()));
  region = client->register_device_region(mine.shared(), patiently());
  ASSERT_TRUE(region) << region.error().text;
  mine.write(std::vector<uint8_t>(mine.bytes(), 0x5a));
  ASSERT_TRUE(load_into(client, *region, chain, interleaved(4)));
  EXPECT_TRUE(mine.read() == laid_out(chain, interleaved(4)));
  EXPECT_EQ(device_of(client).state, "ready");
  EXPECT_EQ(device_of(client).failures, 1U);
}

TEST_P(DeviceRegion, WrongRequestsAreRefused) {
  gpu_daemon daemon;
  tester client(daemon.socket());
  auto mine = memory();
  auto refused = [&](client::device_allocation what, errc code) {
    auto region = client->register_device_region(what, patiently());
    return !region && region.error().code == code;
  };
  auto wrong = mine.shared();
  wrong.device = "a GPU";
  EXPECT_TRUE(refused(wrong, errc::bad_request));
  wrong.device = "GPU-00000000-0000-0000-0000-000000000000";
  EXPECT_TRUE(refused(wrong, errc::not_found));
  auto region = client->register_device_region(mine.shared(), patiently());
  ASSERT_TRUE(region) << region.error().text;
  wrong = mine.shared();
  wrong.bytes = 1ULL << 40;
  EXPECT_FALSE(client->register_device_region(wrong, patiently()));
  auto chain = chain_of(1, 4);
  auto runs = interleaved(4);
  runs[3].offset = mine.bytes() - 1;
  auto stored = store_from(client, *region, chain, runs);
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, errc::bad_request);
  // A counter in memory on the device, and one beyond the page's end.
  auto page = gpu::generation_page::make(16).value();
  auto counters = client->register_region(page.descriptor(), page.memory().size(), patiently()).value();
  for (const client::generation& after :
       {client::generation{&*region, 0, 1}, client::generation{&counters, 64, 1},
        client::generation{&counters, 2, 1}}) {
    stored = store_from(client, *region, chain, interleaved(4), after);
    ASSERT_FALSE(stored);
    EXPECT_EQ(stored.error().code, errc::bad_request) << stored.error().text;
  }
  // A counter that has not been reached, without a bell; and one that has.
  stored = store_from(client, *region, chain, interleaved(4), client::generation{&counters, 4, 1});
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, errc::bad_request);
  EXPECT_NE(stored.error().text.find("expected a bell"), std::string::npos) << stored.error().text;
  page.write({1, 1});
  EXPECT_TRUE(store_from(client, *region, chain, interleaved(4), client::generation{&counters, 4, 1}));
  ASSERT_TRUE(store_from(client, *region, chain, interleaved(4)));
}

INSTANTIATE_TEST_SUITE_P(Of, DeviceRegion,
                         ::testing::Values(device_kind::host, device_kind::cuda_handle,
                                           device_kind::cuda_descriptor),
                         [](const auto& each) { return to_string(each.param); });

} // namespace
} // namespace terrace::e2e
