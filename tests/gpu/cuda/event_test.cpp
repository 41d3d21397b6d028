#include "driver_fixture.hpp"

#include <atomic>
#include <chrono>
#include <future>

namespace terrace::cuda {
namespace {

using EventTest = DriverTest;

TEST_F(EventTest, IsDoneWhenWhatWasBeforeItIs) {
  SKIP_ON_REAL_DRIVER(); // streams cannot be held there
  auto stream = stream::make(in_context()).value();
  auto event = event::make(in_context()).value();
  EXPECT_EQ(event.done(), true) << "never recorded";
  sim.hold_streams();
  ASSERT_TRUE(event.record(stream));
  EXPECT_EQ(event.done(), false);
  EXPECT_EQ(stream.idle(), false);
  sim.release();
  ASSERT_TRUE(stream.synchronize());
  EXPECT_EQ(event.done(), true);
  EXPECT_EQ(stream.idle(), true);
}

TEST_F(EventTest, AStreamWaitsForTheRecordBeforeItsCall) {
  auto first = stream::make(in_context()).value();
  auto second = stream::make(in_context()).value();
  auto event = event::make(in_context()).value();
  host_pages pages(3 << 20);
  auto pinned = registration::make(in_context(), pages.bytes()).value();
  const auto& api = home->api();
  for (int round = 0; round < 20; ++round) {
    // first: 0 -> 1, second: 1 -> 2. Without the event the second would often be earlier.
    fill(pages.bytes().first(1 << 20), static_cast<uint64_t>(round));
    auto at = [&](int part) { return pinned.address() + static_cast<uint64_t>(part) * (1 << 20); };
    ASSERT_TRUE(home->call("cuMemcpyAsync", api.MemcpyAsync, at(1), at(0), size_t{1 << 20}, first.get()));
    ASSERT_TRUE(event.record(first));
    ASSERT_TRUE(event.block(second));
    ASSERT_TRUE(home->call("cuMemcpyAsync", api.MemcpyAsync, at(2), at(1), size_t{1 << 20}, second.get()));
    ASSERT_TRUE(second.synchronize());
    EXPECT_TRUE(has_pattern(pages.bytes().last(1 << 20), static_cast<uint64_t>(round)));
  }
}

TEST_F(EventTest, AWaitForWhatWasNeverRecordedDoesNotWait) {
  auto stream = stream::make(in_context()).value();
  auto event = event::make(in_context()).value();
  ASSERT_TRUE(event.block(stream));
  EXPECT_TRUE(stream.synchronize());
}

TEST_F(EventTest, AWaitIsForTheLatestRecordBeforeItsCall) {
  auto records = stream::make(in_context()).value();
  auto first = stream::make(in_context()).value(), second = stream::make(in_context()).value();
  auto event = event::make_shared(in_context()).value();
  host_pages pages(4096);
  auto pinned = registration::make(in_context(), pages.bytes()).value();
  auto* word = reinterpret_cast<uint32_t*>(pages.bytes().data());
  auto record_behind = [&](uint32_t value) {
    return home->call("cuStreamWaitValue32", home->api().StreamWaitValue32, records.get(), pinned.address(),
                      value, static_cast<unsigned>(wait_value_geq)) &&
           event.record(records);
  };
  ASSERT_TRUE(record_behind(1));
  ASSERT_TRUE(event.block(first));
  ASSERT_TRUE(record_behind(2));
  ASSERT_TRUE(event.block(second));
  EXPECT_EQ(first.idle(), false);
  std::atomic_ref(*word).store(1);
  EXPECT_TRUE(first.synchronize()) << "recorded again, the event is another one for later waits alone";
  EXPECT_EQ(second.idle(), false);
  std::atomic_ref(*word).store(2);
  EXPECT_TRUE(second.synchronize());
  EXPECT_TRUE(records.synchronize());
}

TEST_F(EventTest, MayEndBeforeItIsReached) {
  auto stream = stream::make(in_context()).value();
  {
    auto event = event::make(in_context()).value();
    ASSERT_TRUE(event.record(stream));
    ASSERT_TRUE(event.block(stream));
  }
  EXPECT_TRUE(stream.synchronize());
}

TEST_F(EventTest, BlockingWaitEndsWithTheRecord) {
  SKIP_ON_REAL_DRIVER();
  auto stream = stream::make(in_context()).value();
  auto event = event::make(in_context()).value();
  sim.hold_streams();
  ASSERT_TRUE(event.record(stream));
  auto waits = std::async(std::launch::async, [&] {
    return home->call("cuEventSynchronize", home->api().EventSynchronize, event.get());
  });
  EXPECT_EQ(event.done(), false);
  sim.release();
  EXPECT_TRUE(waits.get());
}

} // namespace
} // namespace terrace::cuda
