// Tests what streams promise about order, on copies of every kind and on values in memory.
#include "driver_fixture.hpp"

#include <atomic>
#include <mutex>
#include <random>
#include <thread>

namespace terrace::cuda {
namespace {

class OrderTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    if (HasFatalFailure())
      return;
    pinned = registration::make(in_context(), pages.bytes()).value();
    work = stream::make(home).value();
  }
  void TearDown() override {
    work.reset();
    pinned.reset();
    DriverTest::TearDown();
  }

  const functions& api() const { return loaded->api(); }
  device_pointer at(uint64_t offset) const { return pinned.address() + offset; }
  std::atomic_ref<uint32_t> word(size_t i) const {
    return std::atomic_ref(reinterpret_cast<uint32_t*>(pages.bytes().data())[i]);
  }

  host_pages pages{1 << 20};
  registration pinned;
  stream work;
};

TEST_F(OrderTest, UnregisteringWaitsForAllStreamsOfTheContext) {
  if (!api().StreamWaitValue32)
    GTEST_SKIP() << "no stream memory operations";
  host_pages others(4096);
  auto unrelated = registration::make(home, others.bytes()).value();
  word(0).store(0);
  ASSERT_TRUE(
      home->call("cuStreamWaitValue32", api().StreamWaitValue32, work.get(), at(0), 1U, wait_value_geq));
  std::atomic<bool> asked = false, let_go = false;
  std::thread unregisters([&] {
    asked = true;
    unrelated.reset();
    EXPECT_TRUE(let_go) << "it returned while a stream waited for a value in other memory";
  });
  auto begun = [&] { return on_real_driver() ? asked.load() : sim.calls("cuMemHostUnregister") != 0; };
  while (!begun())
    std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) // gives time to a driver that does not wait
    EXPECT_FALSE(work.idle().value());
  let_go = true;
  word(0).store(1, std::memory_order_release);
  unregisters.join();
  ASSERT_TRUE(work.synchronize());
}

TEST_F(OrderTest, AStreamIsInOrder) {
  auto memory = allocation::make(home, 1 << 16).value();
  for (uint64_t round = 0; round < 50; ++round) {
    // Each copy reads the bytes that the one before has written.
    fill(pages.bytes().first(1 << 16), round);
    for (auto [to, from] : {std::pair{memory.get().address, at(0)},
                            {at(1 << 17), memory.get().address},
                            {at(1 << 18), at(1 << 17)}})
      ASSERT_TRUE(home->call("cuMemcpyAsync", api().MemcpyAsync, to, from, size_t{1 << 16}, work.get()));
    ASSERT_TRUE(work.synchronize());
    EXPECT_TRUE(has_pattern(pages.bytes().subspan(1 << 18, 1 << 16), round));
  }
}

TEST_F(OrderTest, HostFunctionsComeInOrderAndAfterTheCopies) {
  struct seen {
    const host_pages* pages;
    std::vector<bool> whole;
    std::atomic<int> count{0};
  } seen{&pages, {}, {}};
  for (uint64_t i = 0; i < 20; ++i) {
    fill(pages.bytes().subspan(i * 8192, 4096), i);
    ASSERT_TRUE(home->call("cuMemcpyAsync", api().MemcpyAsync, at((1 << 19) + i * 4096), at(i * 8192),
                           size_t{4096}, work.get()));
    ASSERT_TRUE(home->call(
        "cuLaunchHostFunc", api().LaunchHostFunc, work.get(),
        +[](void* argument) {
          auto& all = *static_cast<struct seen*>(argument);
          auto nth = static_cast<uint64_t>(all.count.load());
          all.whole.push_back(
              bool(has_pattern(all.pages->bytes().subspan((1 << 19) + nth * 4096, 4096), nth)));
          ++all.count;
        },
        static_cast<void*>(&seen)));
  }
  ASSERT_TRUE(work.synchronize());
  EXPECT_EQ(seen.whole, std::vector<bool>(20, true));
}

TEST_F(OrderTest, AValueIsWrittenAfterWhatIsBeforeIt) {
  if (!api().StreamWriteValue32)
    GTEST_SKIP() << "the driver has no stream memory operations";
  // Copies between two places of host memory may block, so they pass through the device.
  auto memory = allocation::make(home, 1 << 16).value();
  auto second = stream::make(home).value();
  for (uint32_t round = 1; round <= 30; ++round) {
    fill(pages.bytes().subspan(4096, 1 << 16), round);
    // The second stream waits for the first only by a value, and is started first.
    ASSERT_TRUE(home->call("cuStreamWaitValue32", api().StreamWaitValue32, second.get(), at(0), round,
                           wait_value_geq));
    ASSERT_TRUE(home->call("cuMemcpyAsync", api().MemcpyAsync, at(1 << 18), memory.get().address,
                           size_t{1 << 16}, second.get()));
    ASSERT_TRUE(home->call("cuMemcpyAsync", api().MemcpyAsync, memory.get().address, at(4096),
                           size_t{1 << 16}, work.get()));
    ASSERT_TRUE(home->call("cuStreamWriteValue32", api().StreamWriteValue32, work.get(), at(0), round,
                           write_value_default));
    ASSERT_TRUE(second.synchronize());
    EXPECT_EQ(word(0).load(), round);
    EXPECT_TRUE(has_pattern(pages.bytes().subspan(1 << 18, 1 << 16), round));
  }
}

TEST_F(OrderTest, GenerationsAreComparedAsACircle) {
  if (!api().StreamWaitValue32)
    GTEST_SKIP() << "the driver has no stream memory operations";
  word(0).store(3); // three records after the counter wrapped around
  ASSERT_TRUE(home->call("cuStreamWaitValue32", api().StreamWaitValue32, work.get(), at(0), 0xfffffffeu,
                         wait_value_geq));
  EXPECT_TRUE(work.synchronize());
  ASSERT_TRUE(
      home->call("cuStreamWaitValue32", api().StreamWaitValue32, work.get(), at(0), 4u, wait_value_geq));
  EXPECT_EQ(work.idle(), false);
  word(0).store(4); // the processor writes it
  EXPECT_TRUE(work.synchronize());
}

TEST_F(OrderTest, BatchesAreInOrderWithWhatSurroundsThem) {
  if (!api().MemcpyBatchAsync)
    GTEST_SKIP() << "the driver has no batched copies";
  constexpr size_t count = 64, bytes = 1000;
  std::vector<device_pointer> to, back, from;
  for (size_t i = 0; i < count; ++i) {
    from.push_back(at(i * bytes));
    to.push_back(at((1 << 18) + (count - 1 - i) * 1024)); // in reverse order, with gaps
    back.push_back(at((1 << 19) + i * bytes));
  }
  std::vector<size_t> sizes(count, bytes);
  copy_attributes attributes;
  size_t begin = 0;
  for (uint64_t round = 0; round < 20; ++round) {
    fill(pages.bytes().first(count * bytes), round);
    auto batch = [&](auto& destinations, auto& sources) {
      return home->call("cuMemcpyBatchAsync", api().MemcpyBatchAsync, destinations.data(), sources.data(),
                        sizes.data(), count, &attributes, &begin, size_t{1}, work.get());
    };
    ASSERT_TRUE(batch(to, from));
    ASSERT_TRUE(batch(back, to));
    ASSERT_TRUE(work.synchronize());
    EXPECT_TRUE(has_pattern(pages.bytes().subspan(1 << 19, count * bytes), round));
  }
}

TEST_F(OrderTest, PlanesAndVolumesHavePitches) {
  constexpr size_t width = 48, height = 5, depth = 3, pitch_from = 64, pitch_to = 100;
  fill(pages.bytes().first(1 << 16), 1);
  copy_2d plane;
  plane.source = at(0);
  plane.source_pitch = pitch_from;
  plane.destination = at(1 << 17);
  plane.destination_pitch = pitch_to;
  plane.width = width;
  plane.height = height;
  ASSERT_TRUE(home->call("cuMemcpy2DAsync", api().Memcpy2DAsync, &plane, work.get()));
  copy_3d volume;
  volume.source = at(0);
  volume.source_pitch = pitch_from;
  volume.source_height = height;
  volume.destination = at(1 << 18);
  volume.destination_pitch = pitch_to;
  volume.destination_height = height + 2;
  volume.width = width;
  volume.height = height;
  volume.depth = depth;
  ASSERT_TRUE(home->call("cuMemcpy3DAsync", api().Memcpy3DAsync, &volume, work.get()));
  std::vector<batch_copy> copies(1);
  copies[0].source.pointer = {at(0), pitch_from, height, {}};
  copies[0].destination.pointer = {at(1 << 19), pitch_to, height + 2, {}};
  copies[0].width = width;
  copies[0].height = height;
  copies[0].depth = depth;
  bool batched = api().Memcpy3DBatchAsync;
  if (batched) {
    ASSERT_TRUE(home->call("cuMemcpy3DBatchAsync", api().Memcpy3DBatchAsync, copies.size(), copies.data(),
                           0ull, work.get()));
  }
  ASSERT_TRUE(work.synchronize());
  for (size_t z = 0; z < depth; ++z)
    for (size_t y = 0; y < height; ++y)
      for (size_t x = 0; x < width; ++x) {
        auto wanted = pattern(1, (z * height + y) * pitch_from + x);
        auto place = (z * (height + 2) + y) * pitch_to + x;
        if (z == 0) {
          ASSERT_EQ(pages[(1 << 17) + place], wanted);
        }
        ASSERT_EQ(pages[(1 << 18) + place], wanted);
        if (batched) {
          ASSERT_EQ(pages[(1 << 19) + place], wanted);
        }
      }
  EXPECT_EQ(pages[(1 << 17) + width], std::byte{0}) << "between the rows nothing is touched";
}

TEST_F(OrderTest, ADestroyedStreamStillDoesWhatItWasGiven) {
  fill(pages.bytes().first(1 << 16), 9);
  std::atomic<bool> done = false;
  ASSERT_TRUE(
      home->call("cuMemcpyAsync", api().MemcpyAsync, at(1 << 17), at(0), size_t{1 << 16}, work.get()));
  ASSERT_TRUE(home->call(
      "cuLaunchHostFunc", api().LaunchHostFunc, work.get(),
      +[](void* flag) {
        static_cast<std::atomic<bool>*>(flag)->store(true);
        static_cast<std::atomic<bool>*>(flag)->notify_all();
      },
      static_cast<void*>(&done)));
  work.reset();
  done.wait(false);
  EXPECT_TRUE(has_pattern(pages.bytes().subspan(1 << 17, 1 << 16), 9));
}

} // namespace
} // namespace terrace::cuda
