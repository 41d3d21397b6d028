// Order, waits, signals, cancels and failures are the same on all devices.
#include "conformance/conformance_fixture.hpp"

#include <thread>

namespace terrace::gpu {
namespace {

class StreamConformance : public DeviceConformance {
 protected:
  void TearDown() override {
    tested->release();
    DeviceConformance::TearDown();
  }

  /// Checks that the region has `expected` at `offset`.
  testing::AssertionResult region_has(uint64_t offset, uint64_t bytes, std::span<const std::byte> expected) {
    auto content = region_content();
    return std::equal(expected.begin(), expected.end(), content.begin() + static_cast<long>(offset),
                      content.begin() + static_cast<long>(offset + bytes))
               ? testing::AssertionSuccess()
               : testing::AssertionFailure() << "the region has other bytes at " << offset;
  }
};

TEST_P(StreamConformance, LaterRequestsOverwriteEarlierOnes) {
  cuda::fill(objects(), 1);
  test_stream loads(dev, direction::load);
  for (uint64_t id = 1; id <= 40; ++id) // each starts where the one before is half done
    ASSERT_TRUE(loads.stream->submit(simple(id, id * 512, id * 1024, 1024)));
  EXPECT_FALSE(loads.wait(40).failure);
  for (uint64_t id = 1; id < 40; ++id) {
    EXPECT_FALSE(loads.ended.at(id).failure);
    EXPECT_EQ(loads.order[id - 1], id);
  }
  auto content = region_content();
  for (uint64_t id = 1; id < 40; ++id)
    ASSERT_TRUE(std::equal(objects().begin() + static_cast<long>(id * 1024),
                           objects().begin() + static_cast<long>(id * 1024 + 512),
                           content.begin() + static_cast<long>(id * 512)))
        << id;
}

TEST_P(StreamConformance, NothingIsCopiedBeforeTheAwaitedGeneration) {
  fill_region(1);
  cuda::fill(objects(), 2);
  std::vector<std::byte> before(objects().begin(), objects().end());
  test_stream stores(dev, direction::store);
  auto waits = simple(1, 0, 0, 4096);
  waits.await = generation{7, 3};
  ASSERT_TRUE(stores.stream->submit(std::move(waits)));
  ASSERT_TRUE(stores.stream->submit(simple(2, 4096, 4096, 4096))); // in order: behind it
  page->write({7, 2});                                             // not yet
  stores.collect();
  EXPECT_TRUE(stores.ended.empty());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), objects().begin()));
  page->write({7, 3});
  EXPECT_FALSE(stores.wait(1).failure);
  EXPECT_FALSE(stores.wait(2).failure);
  EXPECT_TRUE(std::equal(objects().begin(), objects().begin() + 8192, region_content().begin()));
}

TEST_P(StreamConformance, EachLayerIsUsableWhenItsGenerationIs) {
  constexpr uint32_t layers = 8;
  constexpr uint64_t layer_bytes = 16384;
  fill_region(3);
  auto wanted = region_content();
  copy_stream_options options;
  options.parts_in_flight_max = 2;
  test_stream stores(dev, direction::store, options);
  auto layered = request(1, {});
  for (uint32_t i = 0; i < layers; ++i)
    layered.parts.push_back({{{i * layer_bytes, i * layer_bytes, layer_bytes, 0, 0, 1}}, generation{i, 1}});
  // A reader in another thread, like an engine, takes layer after layer while later ones are still copied.
  std::vector<bool> whole;
  std::thread reader([&] {
    for (uint32_t i = 0; i < layers; ++i) {
      page->wait({i, 1});
      auto begin = static_cast<long>(i * layer_bytes), end = static_cast<long>((i + 1) * layer_bytes);
      whole.push_back(std::equal(objects().begin() + begin, objects().begin() + end, wanted.begin() + begin));
    }
  });
  ASSERT_TRUE(stores.stream->submit(std::move(layered)));
  EXPECT_EQ(stores.wait(1).parts_done, layers);
  reader.join();
  EXPECT_EQ(whole, std::vector<bool>(layers, true));
}

TEST_P(StreamConformance, ACancelledWaitCopiesNothingAndBlocksNobody) {
  fill_region(1);
  cuda::fill(objects(), 2);
  test_stream stores(dev, direction::store);
  auto waits = request(1, {{{0, 0, 4096, 0, 0, 1}}, {{4096, 4096, 4096, 0, 0, 1}}});
  waits.await = generation{0, 1};
  waits.parts[1].signal = generation{1, 1};
  ASSERT_TRUE(stores.stream->submit(std::move(waits)));
  ASSERT_TRUE(stores.stream->submit(simple(2, 8192, 8192, 4096)));
  EXPECT_TRUE(stores.stream->cancel(1));
  auto end = stores.wait(1);
  ASSERT_TRUE(end.failure);
  EXPECT_EQ(end.failure->code, errc::cancelled);
  EXPECT_EQ(end.parts_done, 0u);
  EXPECT_FALSE(stores.wait(2).failure);
  EXPECT_TRUE(cuda::has_pattern(objects().first(8192), 2)) << "the cancelled one has written";
  EXPECT_EQ(page->value(1), 0u) << "the cancelled one has signalled";
  EXPECT_TRUE(
      std::equal(objects().begin() + 8192, objects().begin() + 12288, region_content().begin() + 8192));
}

TEST_P(StreamConformance, ACancelKeepsTheBeginningThatWasStarted) {
  SKIP_WITHOUT_CONTROLS();
  fill_region(1);
  cuda::fill(objects(), 2);
  copy_stream_options options;
  options.parts_in_flight_max = 2;
  test_stream stores(dev, direction::store, options);
  auto long_one = request(1, {});
  for (uint64_t i = 0; i < 10; ++i)
    long_one.parts.push_back({{{i * 4096, i * 4096, 4096, 0, 0, 1}}, {}});
  tested->hold();
  ASSERT_TRUE(stores.stream->submit(std::move(long_one)));
  ASSERT_TRUE(stores.stream->submit(simple(2, 0, 0, 16)));
  EXPECT_EQ(stores.stream->parts_in_flight(), 2u);
  EXPECT_TRUE(stores.stream->cancel(1));
  EXPECT_TRUE(stores.stream->cancel(2)); // ends at once
  stores.collect();
  EXPECT_EQ(stores.ended.at(2).parts_done, 0u);
  EXPECT_FALSE(stores.ended.contains(1)) << "the device still has it";
  tested->release();
  auto end = stores.wait(1);
  EXPECT_EQ(end.parts_done, 2u);
  EXPECT_EQ(end.failure->code, errc::cancelled);
  EXPECT_FALSE(stores.stream->cancel(1)) << "it has ended";
  EXPECT_TRUE(std::equal(objects().begin(), objects().begin() + 8192, region_content().begin()));
  EXPECT_TRUE(std::equal(objects().begin() + 8192, objects().end(),
                         [] {
                           static std::vector<std::byte> fresh(objects_bytes);
                           cuda::fill(fresh, 2);
                           return fresh.begin() + 8192;
                         }()))
      << "what was not started is not copied";
}

TEST_P(StreamConformance, WhatIsInFlightIsBounded) {
  SKIP_WITHOUT_CONTROLS();
  copy_stream_options options;
  options.parts_in_flight_max = 4;
  options.bytes_in_flight_max = 10000;
  options.requests_max = 5;
  test_stream loads(dev, direction::load, options);
  tested->hold();
  ASSERT_TRUE(loads.stream->submit(simple(1, 0, 0, 60000))) << "a large one goes alone";
  ASSERT_TRUE(loads.stream->submit(simple(2, 0, 0, 100)));
  EXPECT_EQ(loads.stream->bytes_in_flight(), 60000u);
  ASSERT_TRUE(
      loads.stream->submit(request(3, std::vector(8, std::vector{strided_copy{0, 0, 100, 0, 0, 1}}))));
  ASSERT_TRUE(loads.stream->submit(simple(4, 0, 0, 1)));
  EXPECT_EQ(loads.stream->submit(simple(4, 0, 0, 1)).error().code, errc::bad_request) << "an id in use";
  ASSERT_TRUE(loads.stream->submit(simple(5, 0, 0, 1)));
  EXPECT_EQ(loads.stream->submit(simple(6, 0, 0, 1)).error().code, errc::busy);
  tested->release();
  for (uint64_t id = 1; id <= 5; ++id)
    EXPECT_FALSE(loads.wait(id).failure);
}

TEST_P(StreamConformance, AFailedPartEndsItsRequestAndNoOther) {
  SKIP_WITHOUT_CONTROLS();
  cuda::fill(objects(), 1);
  fill_region(9);
  test_stream loads(dev, direction::load);
  auto layered = request(1, {});
  for (uint32_t i = 0; i < 6; ++i)
    layered.parts.push_back({{{i * 1024, i * 1024, 1024, 0, 0, 1}}, generation{i, 1}});
  tested->fail_part(2);
  ASSERT_TRUE(loads.stream->submit(std::move(layered)));
  ASSERT_TRUE(loads.stream->submit(simple(2, 100000, 0, 1024)));
  auto end = loads.wait(1);
  ASSERT_TRUE(end.failure);
  EXPECT_EQ(end.failure->code, errc::internal) << end.failure->text;
  EXPECT_EQ(end.parts_done, 2u);
  EXPECT_FALSE(loads.wait(2).failure);
  for (uint32_t i = 0; i < 6; ++i)
    EXPECT_EQ(page->value(i), i < 2 ? 1u : 0u) << "layer " << i;
  EXPECT_TRUE(region_has(0, 2048, objects().first(2048)));
  EXPECT_TRUE(region_has(100000, 1024, objects().first(1024)));
}

TEST_P(StreamConformance, ALostDeviceEndsEverythingAndSaysSo) {
  SKIP_WITHOUT_CONTROLS();
  lost = true;
  test_stream loads(dev, direction::load);
  EXPECT_TRUE(loads.stream->check());
  auto waits = simple(3, 0, 0, 100);
  waits.await = generation{0, 1};
  tested->hold();
  tested->lose();
  for (uint64_t id = 1; id <= 2; ++id)
    ASSERT_TRUE(loads.stream->submit(simple(id, 0, 0, 1024)));
  ASSERT_TRUE(loads.stream->submit(std::move(waits)));
  tested->release();
  // A lost device does not report anything by itself: an owner whose deadline has passed asks.
  while (loads.stream->check())
    std::this_thread::yield();
  for (uint64_t id = 1; id <= 3; ++id) {
    auto end = loads.wait(id);
    ASSERT_TRUE(end.failure) << id;
    EXPECT_EQ(end.failure->code, errc::gone);
    EXPECT_EQ(end.parts_done, 0u);
  }
  EXPECT_EQ(loads.stream->submit(simple(4, 0, 0, 1)).error().code, errc::gone);
}

TEST_P(StreamConformance, AStreamMayEndWithWorkAndWaitsLeft) {
  cuda::fill(objects(), 4);
  {
    test_stream loads(dev, direction::load);
    ASSERT_TRUE(loads.stream->submit(simple(1, 0, 0, 65536)));
    auto waits = simple(2, 0, 0, 4096);
    waits.await = generation{0, 5};
    ASSERT_TRUE(loads.stream->submit(std::move(waits)));
    ASSERT_TRUE(loads.stream->submit(simple(3, 4096, 0, 4096)));
  }
  EXPECT_TRUE(region_has(0, 65536, objects().first(65536)))
      << "what was started is done when the stream has ended";
}

TEST_P(StreamConformance, RequestsMustFitTheirMemory) {
  test_stream loads(dev, direction::load);
  auto refused = [&](copy_request bad) {
    auto answer = loads.stream->submit(std::move(bad));
    return !answer && answer.error().code == errc::bad_request;
  };
  EXPECT_TRUE(refused(simple(1, region_bytes - 10, 0, 11)));
  EXPECT_TRUE(refused(simple(1, 0, objects_bytes - 10, 11)));
  EXPECT_TRUE(refused(request(1, {{{0, 0, 100, region_bytes / 2, 100, 3}}})));
  auto signals = simple(1, 0, 0, 1);
  signals.parts[0].signal = generation{slots, 1};
  EXPECT_TRUE(refused(signals));
  signals.page = nullptr;
  signals.parts[0].signal = generation{0, 1};
  EXPECT_TRUE(refused(signals)) << "without a page there is no slot";
  auto nowhere = simple(1, 0, 0, 1);
  nowhere.region = nullptr;
  EXPECT_TRUE(refused(nowhere));
}

TEST_P(StreamConformance, MemoryOfAnotherDeviceIsRefused) {
  class foreign : public memory {
   public:
    uint64_t bytes() const override { return 4096; }
    result<memory_handle> share() const override { return fail(errc::unsupported, ""); }
  };
  test_stream loads(dev, direction::load);
  auto strange = simple(1, 0, 0, 16);
  strange.region = std::make_shared<foreign>();
  ASSERT_TRUE(loads.stream->submit(std::move(strange)));
  ASSERT_TRUE(loads.stream->submit(simple(2, 0, 0, 16)));
  EXPECT_EQ(loads.wait(1).failure->code, errc::bad_request);
  EXPECT_FALSE(loads.wait(2).failure);
}

TEST_P(StreamConformance, ADeviceHasOnlySoMuchMemory) {
  auto too_much = dev->allocate(uint64_t{1} << 62);
  ASSERT_FALSE(too_much);
  EXPECT_FALSE(arena->share()) << "pinned pages are not the device's to share";
}

INSTANTIATE_TEST_SUITE_P(Devices, StreamConformance, testing::ValuesIn(device_names()),
                         [](const auto& one) { return one.param; });

} // namespace
} // namespace terrace::gpu
