// The slots of a ring: when they are used again, and what raises their counters.
// tests/e2e/layer_ring_test.cpp tests the daemon's side.
#include "client/layer_ring.hpp"

#include "scripted_daemon.hpp"

#include <atomic>
#include <thread>

using namespace terrace;
using namespace terrace::client;
using namespace terrace::client::test;

namespace {

struct a_ring {
  explicit a_ring(uint32_t loads = 3, uint32_t layers = 2)
      : memory(region::create("ring", 4096).value()),
        ring(layer_ring::make(memory, at, {.loads = loads, .layers = layers}).value()) {}

  uint32_t& word(const layer_counter& counter) {
    return reinterpret_cast<uint32_t*>(memory.data())[counter.offset / sizeof(uint32_t)];
  }
  void write(const layer_counter& counter) {
    std::atomic_ref(word(counter)).store(counter.value, std::memory_order_release);
  }

  region memory;
  registered_region at;
  std::unique_ptr<layer_ring> ring;
};

} // namespace

TEST(LayerRing, CountersOfSlotsStandApart) {
  a_ring made(4, 3);
  std::vector<bool> used(1024);
  for (int i = 0; i < 4; ++i) {
    auto load = made.ring->begin();
    ASSERT_FINE(load);
    for (const layer_counter& each : {load->layer(0), load->layer(1), load->layer(2), load->passed()}) {
      EXPECT_EQ(each.value, load->value);
      ASSERT_LT(each.offset + 4, layer_ring::bytes_for(4, 3) + 1);
      EXPECT_FALSE(used[each.offset / 4]);
      used[each.offset / 4] = true;
    }
  }
}

TEST(LayerRing, ASlotWaitsForItsEndItsLayersAndItsWaiters) {
  a_ring made;
  auto first = *made.ring->begin();
  auto second = *made.ring->begin();
  auto third = *made.ring->begin();
  EXPECT_FAILS(made.ring->begin(), errc::busy,
               "slot 0 of the ring cannot be used again: its load has not ended");
  made.write(first.layer(0));
  EXPECT_TRUE(made.ring->arrived(first, 0));
  EXPECT_FALSE(made.ring->arrived(first, 1));
  made.ring->end(first, errc::ok);
  EXPECT_TRUE(made.ring->arrived(first, 1)) << "a load that ended lets everybody go";
  EXPECT_FAILS(made.ring->begin(), errc::busy, "waiters have not passed");
  made.write(first.passed());
  auto again = made.ring->begin();
  ASSERT_FINE(again);
  EXPECT_EQ(again->slot, first.slot);
  EXPECT_FALSE(made.ring->arrived(*again, 0));
  made.ring->end(second, errc::not_found);
  made.ring->pass(second);
  EXPECT_TRUE(made.ring->begin());
  // lowers a layer's counter, as a late write of the device would
  made.ring->end(third, errc::ok);
  made.ring->pass(third);
  made.word(third.layer(1)) = 0;
  EXPECT_FAILS(made.ring->begin(), errc::busy, "layer 1 has not arrived");
}

TEST(LayerRing, AfterALossItIsRestarted) {
  a_ring made;
  auto first = *made.ring->begin();
  auto second = *made.ring->begin();
  made.ring->end(first, errc::gone);
  EXPECT_FAILS(made.ring->begin(), errc::gone, "restart");
  made.ring->restart();
  EXPECT_TRUE(made.ring->arrived(second, 1));
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(made.ring->begin());
}

TEST(LayerRing, CountersWrapAround) {
  a_ring made;
  for (uint32_t i = 0; i < 3; ++i) {
    auto load = *made.ring->begin();
    made.ring->end(load, errc::ok);
    made.ring->pass(load);
  }
  layered_load last{made.ring.get(), 0, UINT32_MAX};
  made.write(last.layer(0));
  EXPECT_TRUE(made.ring->arrived(last, 0));
  EXPECT_FALSE(made.ring->arrived({made.ring.get(), 0, 3}, 0)) << "4 further";
}

TEST(LayerRing, AProcessorWaitsForALayerToo) {
  a_ring made;
  auto load = *made.ring->begin();
  EXPECT_FALSE(made.ring->wait(load, 0, within(std::chrono::milliseconds(1))));
  std::thread device([&] { made.ring->end(load, errc::ok); });
  EXPECT_TRUE(made.ring->wait(load, 1));
  device.join();
}

TEST(LayerRing, ALoadThatWasGivenUpKeepsItsSlotUntilItIsAnswered) {
  std::atomic<bool> answer = false;
  scripted_daemon daemon([&](peer& client) {
    client.welcome();
    client.answer_open_space(5);
    client.answer_register_region(7);
    client.answer_register_region(8);
    auto asked = client.expect(kind::load);
    const auto* generations = asked.as<wire::Load>().generations();
    ASSERT_NE(generations, nullptr);
    EXPECT_EQ(generations->region(), 8U);
    EXPECT_EQ(generations->offset(), 0U);
    EXPECT_EQ(generations->value(), 1U);
    client.expect(kind::cancel);
    answer.wait(false);
    client.refuse(asked.id, errc::cancelled, "given up");
    client.drain();
  });
  auto connected = daemon.connect();
  auto space = connected.open_space(some_space());
  ASSERT_FINE(space);
  auto memory = region::create("memory", 4096).value();
  auto target = connected.register_region(memory);
  ASSERT_FINE(target);
  auto page_memory = region::create("page", 4096).value();
  auto page = connected.register_generations(page_memory, "host");
  ASSERT_FINE(page);
  auto ring = layer_ring::make(page_memory, *page, {.layers = 1}).value();
  auto load = *ring->begin();
  auto digests = some_digests(1);
  std::vector<run> runs{{.offset = 0, .bytes = 4096}};
  load_request request{.in = *space, .what = prefix::of_digests(digests), .region = &*target, .runs = runs};
  request.layers = load;
  EXPECT_FAILS(connected.load(request, within(std::chrono::milliseconds(5))), errc::deadline, "");
  EXPECT_TRUE(ring->arrived(load, 0)) << "nobody waits for it any more";
  ring->pass(load);
  for (int i = 1; i < 3; ++i) {
    auto other = *ring->begin();
    ring->end(other, errc::ok);
    ring->pass(other);
  }
  EXPECT_FAILS(ring->begin(), errc::busy, "has not answered its load");
  answer = true;
  answer.notify_one();
  ASSERT_FINE(connected.poll(std::nullopt));
  EXPECT_TRUE(ring->begin());
}
