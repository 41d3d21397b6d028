#include "transfer/device_share.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

namespace terrace {
namespace {

constexpr uint64_t kib = 1024;
constexpr uint64_t mib = 1024 * kib;
constexpr io_limits limits;

/// A file of a trust group with endless, or a few, reads.
struct reader {
  reader(const std::shared_ptr<shared_device>& device, uint64_t group) : share(device, group, limits) {}

  io_scheduler shares{limits};
  device_share share;
  std::deque<uint64_t> waiting; ///< bytes
};

/// A device that completes operations in the order of their start.
struct DeviceShare : ::testing::Test {
  struct operation {
    reader* of = nullptr;
    uint64_t bytes = 0;
  };
  std::shared_ptr<shared_device> device = std::make_shared<shared_device>();
  reader greedy{device, 1};
  reader small{device, 2};
  std::deque<operation> running;

  size_t start(reader& of) {
    size_t started = 0;
    while (!of.waiting.empty()) {
      auto grant = of.shares.next({of.waiting.front()}, of.share.room());
      if (!grant)
        break;
      of.waiting.front() -= grant->bytes;
      if (of.waiting.front() == 0)
        of.waiting.pop_front();
      running.push_back({&of, grant->bytes});
      ++started;
    }
    if (of.waiting.empty() && of.shares.in_flight() == 0)
      of.share.idle();
    return started;
  }
  size_t read(reader& of, uint64_t bytes, size_t count = 1) {
    of.waiting.insert(of.waiting.end(), count, bytes);
    return start(of);
  }
  /// Completes the first, and lets its group go on.
  operation complete() {
    operation done = running.front();
    running.pop_front();
    done.of->shares.finished(io_class::load, done.bytes);
    done.of->share.finished(done.bytes);
    start(*done.of);
    return done;
  }
  /// The bytes of others that the device completes before it has completed all that `of` has asked for.
  uint64_t others_until_done(reader& of) {
    uint64_t others = 0;
    while (!of.waiting.empty() || of.shares.in_flight() != 0)
      if (auto done = complete(); done.of != &of)
        others += done.bytes;
    return others;
  }
};

TEST_F(DeviceShare, AloneAGroupHasTheWholeDevice) {
  EXPECT_EQ(read(greedy, 8 * mib, 100), limits.depth);
  EXPECT_EQ(greedy.shares.bytes_in_flight(), limits.bytes_in_flight);
  EXPECT_FALSE(greedy.share.contended());
}

TEST_F(DeviceShare, AnotherGroupStartsAtOnceAndTheFirstGoesDownToItsPart) {
  read(greedy, 8 * mib, 1000);
  EXPECT_EQ(read(small, 64 * kib), 1u);
  EXPECT_EQ(others_until_done(small), limits.bytes_in_flight) << "what the first had in flight, once";
  read(small, 64 * kib, 40);
  complete();
  EXPECT_TRUE(small.share.contended());
  EXPECT_LE(greedy.shares.bytes_in_flight(), limits.shared_bytes / 2);
}

TEST_F(DeviceShare, WhoReturnsSoonMeetsLittleOfAGreedyGroup) {
  read(greedy, 8 * mib, 10'000);
  read(small, 64 * kib);
  others_until_done(small);
  for (int i = 0; i < 50; ++i) {
    for (int pause = 0; pause < 3; ++pause)
      complete(); // while nothing of it waits
    read(small, 64 * kib);
    EXPECT_LE(others_until_done(small), limits.shared_bytes) << i;
  }
}

TEST_F(DeviceShare, GroupsThatBothWaitGetEqualBytesWhateverTheirOperations) {
  read(greedy, 8 * mib, 1000);
  read(small, mib, 8000);
  for (int i = 0; i < 64; ++i)
    complete(); // what the first had in flight
  std::map<reader*, uint64_t> got;
  for (int i = 0; i < 2000; ++i) {
    auto done = complete();
    got[done.of] += done.bytes;
  }
  EXPECT_NEAR(static_cast<double>(got[&small]), static_cast<double>(got[&greedy]), 32.0 * mib);
}

TEST_F(DeviceShare, SmallOperationsAreBoundedByTheirNumber) {
  read(small, 4 * kib, 1000);
  read(greedy, 4 * kib, 1000);
  for (int i = 0; i < 100; ++i)
    complete();
  EXPECT_EQ(greedy.shares.in_flight(), limits.depth / 2);
  EXPECT_EQ(small.shares.in_flight(), limits.depth / 2);
}

TEST_F(DeviceShare, AGroupThatIsAloneAgainHasTheWholeDeviceAfterAWhile) {
  read(greedy, 8 * mib, 10'000);
  read(small, 64 * kib);
  others_until_done(small);
  complete();
  EXPECT_LE(greedy.shares.bytes_in_flight(), limits.shared_bytes);
  uint64_t completed = 0;
  while (greedy.shares.bytes_in_flight() < limits.bytes_in_flight) {
    completed += complete().bytes;
    ASSERT_LE(completed, 4 * limits.bytes_in_flight);
  }
}

TEST_F(DeviceShare, FilesOfOneGroupAreNotOthersAndDivideItsPart) {
  reader second(device, 1);
  EXPECT_EQ(read(greedy, 8 * mib, 100), limits.depth);
  EXPECT_EQ(read(second, 8 * mib, 100), limits.depth);
  EXPECT_FALSE(second.share.contended());
  read(small, mib, 1000);
  while (running.front().of != &small)
    complete();
  EXPECT_LE(greedy.shares.bytes_in_flight() + second.shares.bytes_in_flight(), limits.shared_bytes / 2);
  EXPECT_GE(second.shares.in_flight(), 1u);
}

TEST_F(DeviceShare, HoweverManyGroupsEachHasAnOperation) {
  std::vector<std::unique_ptr<reader>> many;
  for (uint64_t group = 10; group < 110; ++group) {
    many.push_back(std::make_unique<reader>(device, group));
    EXPECT_GE(read(*many.back(), 8 * mib, 100), 1u);
  }
  for (int i = 0; i < 1000; ++i)
    complete();
  for (const auto& one : many)
    EXPECT_EQ(one->shares.in_flight(), 1u);
}

TEST_F(DeviceShare, AGroupThatEndsLeavesTheDevice) {
  {
    reader passing(device, 3);
    read(passing, mib);
    running.clear();
    EXPECT_EQ(device->active_groups(), 1u);
  }
  EXPECT_EQ(device->active_groups(), 0u);
}

} // namespace
} // namespace terrace
