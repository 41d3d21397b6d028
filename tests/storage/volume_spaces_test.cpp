#include "storage/volume_spaces.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

space_fingerprint print_of(uint8_t number) { return {number}; }

TEST(VolumeSpaces, ASpaceIsKnownUntilACheckpointWithoutItIsWritten) {
  volume_spaces spaces;
  spaces.define(space_id{1}, print_of(1));
  spaces.define(space_id{2}, print_of(2));
  spaces.checkpoint_begun(0); // names both spaces
  spaces.forget(space_id{1});
  EXPECT_EQ(spaces.records().size(), 1U);
  spaces.checkpoints_done(1);
  EXPECT_TRUE(spaces.knows(print_of(1))) << "the checkpoint began before";
  spaces.checkpoint_begun(1);
  EXPECT_TRUE(spaces.knows(print_of(1)));
  spaces.checkpoints_done(1); // not yet
  EXPECT_TRUE(spaces.knows(print_of(1)));
  spaces.checkpoints_done(2);
  EXPECT_FALSE(spaces.knows(print_of(1)));
  EXPECT_TRUE(spaces.knows(print_of(2)));
  EXPECT_EQ(spaces.size(), 1U);
}

TEST(VolumeSpaces, WhatWasLeftOutIsKnownUntilACheckpointWithoutItIsWritten) {
  volume_spaces spaces(1);
  spaces.leave_out(5, print_of(1));
  EXPECT_TRUE(spaces.knows(print_of(1)));
  EXPECT_TRUE(spaces.records().empty()) << "a checkpoint does not name it";
  EXPECT_EQ(spaces.define(space_id{1}, print_of(2)), 6U);
  spaces.checkpoint_begun(0);
  EXPECT_TRUE(spaces.knows(print_of(1)));
  spaces.checkpoints_done(1);
  EXPECT_FALSE(spaces.knows(print_of(1)));
}

TEST(VolumeSpaces, ANumberIsNotUsedAgain) {
  volume_spaces spaces;
  EXPECT_EQ(spaces.define(space_id{1}, print_of(1)), 1U);
  spaces.forget(space_id{1});
  EXPECT_EQ(spaces.define(space_id{2}, print_of(1)), 2U);
}

} // namespace
} // namespace terrace
