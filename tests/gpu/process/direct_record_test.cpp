#include "gpu/process/direct_record.hpp"

#include <gtest/gtest.h>

namespace terrace::gpu {
namespace {

TEST(DirectRecord, CountsTheFailuresOfOneProcess) {
  direct_record record;
  record.begin(3);
  for (size_t n = 1; n <= direct_record::failures_max; ++n)
    EXPECT_EQ(record.failed(3), n);
  record.begin(4);
  EXPECT_EQ(record.failed(4), 1u) << "another one begins anew";
  EXPECT_FALSE(record.given_up());
}

TEST(DirectRecord, WhatAnEarlierProcessTellsLateDoesNotCount) {
  direct_record record;
  record.begin(3);
  EXPECT_EQ(record.failed(3), 1u);
  record.begin(4);
  EXPECT_EQ(record.failed(3), 0u);
  record.lost(3);
  EXPECT_EQ(record.losses(), 0u);
  EXPECT_EQ(record.failed(4), 1u);
}

TEST(DirectRecord, EachProcessIsLostOnce) {
  direct_record record;
  record.begin(1);
  record.lost(1);
  record.lost(1);
  EXPECT_EQ(record.losses(), 1u);
  EXPECT_FALSE(record.given_up());
  record.begin(2); // it does well
  record.begin(3);
  record.lost(3);
  EXPECT_EQ(record.losses(), 2u);
  EXPECT_TRUE(record.given_up());
}

} // namespace
} // namespace terrace::gpu
