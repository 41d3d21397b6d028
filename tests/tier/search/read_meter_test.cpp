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

// ---- a store behind a link ----

namespace {

struct ReadMeterBehindALink : ReadMeter {
  /// Reads as a link of this latency and 100 MiB/s does; `first` bytes come at once.
  void read_far(uint64_t bytes, std::chrono::milliseconds latency, uint64_t first = 64 << 10) {
    meter.has_to_read(0, bytes, now);
    now += latency;
    meter.answered(first, now);
    meter.answered(first, now + 1ms); // further bytes of the same answer
    now += std::chrono::microseconds((bytes - std::min(first, bytes)) * 1'000'000 / (100 * mib));
    meter.arrived(bytes, now);
    meter.has_to_read(bytes, 0, now);
  }
  read_state state() const { return meter.state(now); }
};

} // namespace

TEST_F(ReadMeterBehindALink, TheTimeUntilTheFirstByteIsNoPartOfTheSpeed) {
  for (uint64_t bytes : {1 * mib, 8 * mib, 1 * mib, 64 * mib, 1 * mib}) {
    read_far(bytes, 50ms);
    EXPECT_NEAR(state().bytes_per_s, 100 * mib_per_s, mib_per_s);
    EXPECT_NEAR(state().first_byte_s, 0.05, 1e-6);
  }
  EXPECT_NEAR(state().read_s(10 * mib), 0.15, 2e-3);
}

TEST_F(ReadMeterBehindALink, WhatIsToBeReadAlreadyComesFirst) {
  read_far(64 * mib, 50ms);
  meter.has_to_read(0, 20 * mib, now);
  EXPECT_NEAR(state().read_s(10 * mib), 0.35, 3e-3);
}

TEST_F(ReadMeterBehindALink, WhereAllComesAtOnceTheSpeedContainsTheLatency) {
  for (int i = 0; i < 10; ++i)
    read_far(64 << 10, 50ms);
  EXPECT_EQ(state().first_byte_s, 0);
  EXPECT_NEAR(state().read_s(64 << 10), 0.05, 1e-3);
  EXPECT_NEAR(state().read_s(640 << 10), 0.5, 1e-2);
}

TEST_F(ReadMeterBehindALink, TheLatencyFollowsTheLink) {
  read_far(8 * mib, 1ms);
  EXPECT_NEAR(state().first_byte_s, 0.001, 1e-6);
  for (int i = 0; i < 20; ++i)
    read_far(8 * mib, 50ms);
  EXPECT_NEAR(state().first_byte_s, 0.05, 1e-3);
}

TEST_F(ReadMeterBehindALink, AnAnswerThatIsLateCountsBeforeItComes) {
  read_far(64 * mib, 10ms);
  meter.has_to_read(0, mib, now);
  now += 5ms;
  EXPECT_NEAR(state().first_byte_s, 0.01, 1e-6);
  now += 495ms;
  EXPECT_NEAR(state().first_byte_s, 0.5, 1e-6);
  EXPECT_NEAR(state().bytes_per_s, 100 * mib_per_s, mib_per_s) << "the latency is late, not the speed";
  EXPECT_NEAR(state().waits_s, 0.5, 1e-6);
  meter.answered(1, now);
  now += 1s;
  EXPECT_LT(state().bytes_per_s, 50 * mib_per_s) << "64 MiB in 640 ms, and nothing in a second";
}

TEST_F(ReadMeterBehindALink, AnAnswerOfNothingTellsTheLatencyAlone) {
  meter.has_to_read(0, mib, now);
  now += 50ms;
  meter.answered(0, now);
  meter.has_to_read(mib, 0, now); // there was no value
  EXPECT_EQ(state().bytes_per_s, 0);
}
