#include "storage/disk/disk_service.hpp"

#include <gtest/gtest.h>

using namespace terrace;

TEST(VolumeState, ATierJoinsOnceItsFilesAreOpen) {
  volume_state volume;
  EXPECT_EQ(volume.phase(), disk_phase::off);
  EXPECT_FALSE(volume.will_join());
  volume.starting();
  EXPECT_TRUE(volume.will_join());
  volume.locked();
  EXPECT_TRUE(volume.will_join());
  volume.ready();
  EXPECT_FALSE(volume.will_join());
  volume.refuse("no such file");
  EXPECT_FALSE(volume.will_join());
  EXPECT_EQ(volume.refusal(), "no such file");
}

TEST(VolumeState, ReportsATierThatHasNotJoined) {
  volume_state volume;
  EXPECT_FALSE(volume.report_absent()) << "none is configured";
  volume.starting();
  EXPECT_EQ(volume.report_absent()->kind, tier_kind::disk);
  EXPECT_EQ(volume.report_absent()->state, "starting");
  EXPECT_EQ(volume.report_absent()->reason, "its file is being prepared");
  volume.locked();
  EXPECT_EQ(volume.report_absent()->state, "starting");
  EXPECT_NE(volume.report_absent()->reason.find("another process has its file open"), std::string::npos);
  volume.refuse("no such file");
  EXPECT_EQ(volume.report_absent()->state, "degraded");
  EXPECT_EQ(volume.report_absent()->reason, "no such file");
}
