#include "transfer/device_health.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace terrace {
namespace {

using namespace std::chrono_literals;
using state = device_health::state;

struct DeviceHealth : ::testing::Test {
  device_health health{{.failures_max = 3, .first_pause = 1s, .longest_pause = 8s, .recovered_after = 2}};
  device_health::time_point now{1h};

  /// Out of service once more, by the pause of its next trial.
  std::chrono::milliseconds fail_trial() {
    health.begin_trial();
    EXPECT_FALSE(health.end_trial(EIO, now));
    return health.pause();
  }
};

TEST_F(DeviceHealth, SingleErrorsAreNotTheDevices) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(health.failed(EIO, now));
    EXPECT_FALSE(health.failed(EIO, now));
    health.succeeded();
  }
  EXPECT_TRUE(health.healthy());
}

TEST_F(DeviceHealth, OneStallSpeaksForTheDevice) {
  EXPECT_TRUE(health.stalled(now));
  EXPECT_EQ(health.error_number(), ETIMEDOUT);
  EXPECT_FALSE(health.stalled(now)); // told once
  health.begin_trial();
  EXPECT_FALSE(health.stalled(now)); // the trial says it itself
}

TEST_F(DeviceHealth, ErrorsInARowTakeItOutOfServiceAndAreToldOnce) {
  EXPECT_FALSE(health.failed(EIO, now));
  EXPECT_FALSE(health.failed(EIO, now));
  EXPECT_TRUE(health.failed(ETIMEDOUT, now));
  EXPECT_FALSE(health.failed(EIO, now)); // what was in flight comes in late
  EXPECT_EQ(health.now(), state::degraded);
  EXPECT_EQ(health.error_number(), ETIMEDOUT);
  EXPECT_EQ(health.retry_at(), now + 1s);
}

TEST_F(DeviceHealth, ErrorsOfTheWholeDeviceCountAtOnce) {
  for (int error : {ENODEV, ENXIO, EROFS, EBADF, ENOSPC, EDQUOT}) {
    device_health one;
    EXPECT_TRUE(one.failed(error, now)) << error;
  }
  EXPECT_FALSE(device_health().failed(EIO, now));
}

TEST_F(DeviceHealth, ASuccessfulTrialBringsItBack) {
  health.failed(ENODEV, now);
  health.begin_trial();
  EXPECT_EQ(health.now(), state::probing);
  EXPECT_TRUE(health.end_trial(0, now));
  EXPECT_TRUE(health.healthy());
  EXPECT_FALSE(health.failed(EIO, now)) << "failures of before count no more";
}

TEST_F(DeviceHealth, EachFailedTrialDoublesThePauseUpToALimit) {
  health.failed(ENODEV, now);
  EXPECT_EQ(health.pause(), 1s);
  EXPECT_EQ(fail_trial(), 2s);
  EXPECT_EQ(fail_trial(), 4s);
  EXPECT_EQ(fail_trial(), 8s);
  EXPECT_EQ(fail_trial(), 8s);
  EXPECT_EQ(health.retry_at(), now + 8s);
}

TEST_F(DeviceHealth, ADeviceThatFailsSoonAfterItCameBackPausesLonger) {
  health.failed(ENODEV, now);
  health.begin_trial();
  health.end_trial(0, now);
  health.succeeded();
  health.failed(ENODEV, now);
  EXPECT_EQ(health.pause(), 2s);
}

TEST_F(DeviceHealth, ADeviceThatWorkedForAWhileBeginsAnew) {
  health.failed(ENODEV, now);
  health.begin_trial();
  health.end_trial(0, now);
  health.succeeded();
  health.succeeded();
  health.failed(ENODEV, now);
  EXPECT_EQ(health.pause(), 1s);
}

TEST_F(DeviceHealth, WhatSucceedsLateDoesNotBringItBack) {
  health.failed(ENODEV, now);
  health.succeeded();
  EXPECT_EQ(health.now(), state::degraded);
}

} // namespace
} // namespace terrace
