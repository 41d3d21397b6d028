#include "tier/search/read_meter.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t mib = 1 << 20;
constexpr double mib_per_s = 1 << 20;

struct ReadMeter : ::testing::Test {
  read_meter meter;
  read_meter::time_point now{1h};

  void read(uint64_t bytes, std::chrono::milliseconds takes) {
    meter.has_to_read(0, bytes, now);
    now += takes;
    meter.arrived(bytes, now);
    meter.has_to_read(bytes, 0, now);
  }
  double speed() const { return meter.state(now).bytes_per_s; }
};

} // namespace

TEST_F(ReadMeter, KnowsNothingBeforeAnythingHasArrived) {
  EXPECT_EQ(speed(), 0);
  meter.has_to_read(0, 5 * mib, now);
  now += 1s;
  EXPECT_EQ(speed(), 0);
  EXPECT_EQ(meter.state(now).queued_bytes, 5 * mib);
  meter.has_to_read(5 * mib, 0, now); // the read failed
  EXPECT_EQ(speed(), 0);
  EXPECT_EQ(meter.state(now).queued_bytes, 0u);
}

TEST_F(ReadMeter, IdleTimeIsNotSlow) {
  for (int i = 0; i < 10; ++i) {
    read(100 * mib, 100ms);
    now += 10min;
  }
  EXPECT_NEAR(speed(), 1000 * mib_per_s, mib_per_s);
  EXPECT_NEAR(meter.state(now).idle_s, 600, 1e-3);
}

TEST_F(ReadMeter, ReadsInParallelShareTheTime) {
  meter.has_to_read(0, 10 * mib, now);
  meter.has_to_read(0, 10 * mib, now);
  now += 100ms;
  meter.arrived(10 * mib, now);
  meter.has_to_read(10 * mib, 0, now);
  EXPECT_EQ(meter.state(now).queued_bytes, 10 * mib);
  EXPECT_EQ(meter.state(now).idle_s, 0);
  meter.arrived(10 * mib, now);
  meter.has_to_read(10 * mib, 0, now);
  EXPECT_NEAR(speed(), 200 * mib_per_s, 10 * mib_per_s); // the first one has faded a little
}

TEST_F(ReadMeter, FollowsADeviceThatBecomesSlower) {
  for (int i = 0; i < 100; ++i)
    read(100 * mib, 10ms);
  for (int i = 0; i < 100; ++i)
    read(1 * mib, 100ms);
  EXPECT_LT(speed(), 12 * mib_per_s);
  EXPECT_GT(speed(), 9 * mib_per_s);
}

TEST_F(ReadMeter, FollowsADeviceThatBecomesFaster) {
  for (int i = 0; i < 100; ++i)
    read(1 * mib, 100ms);
  now += 1min;
  for (int i = 0; i < 10; ++i)
    read(16 * mib, 16ms);
  EXPECT_GT(speed(), 500 * mib_per_s);
}

TEST_F(ReadMeter, AReadThatIsLateMakesTheSpeedLowerBeforeItArrives) {
  read(100 * mib, 100ms);
  meter.has_to_read(0, 100 * mib, now);
  now += 100ms;
  EXPECT_NEAR(speed(), 1000 * mib_per_s, mib_per_s); // the read is on time
  now += 900ms;
  EXPECT_NEAR(speed(), 100 * mib_per_s, mib_per_s);
}

TEST_F(ReadMeter, ATimeBeforeTheLastOneCountsAsThat) {
  read(100 * mib, 100ms);
  meter.has_to_read(0, 100 * mib, now);
  meter.arrived(50 * mib, now - 50ms);
  now += 100ms;
  meter.arrived(50 * mib, now);
  meter.has_to_read(100 * mib, 0, now - 1ms);
  EXPECT_NEAR(speed(), 1000 * mib_per_s, 100 * mib_per_s);
  EXPECT_EQ(meter.state(now - 1s).idle_s, 0);
}
