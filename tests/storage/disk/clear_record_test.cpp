
#include "storage/pending_clears.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

using namespace terrace;

namespace {

pending_clear of_a_volume() {
  pending_clear clear;
  clear.volume.bytes[0] = 7;
  clear.epoch = 3;
  return clear;
}

struct ClearRecord : ::testing::Test {
  test::temporary_folder folder;
  std::string state = (folder / "state").string();
  std::vector<std::string> files{(folder / "a").string(), (folder / "b").string()};

  error remember(const pending_clear& clear, disk_phase phase) {
    return remember_clear(state, files, clear, [phase] { return phase; }).failure;
  }
  size_t of(size_t file) const { return pending_clears(state).of(std::vector{files[file]}).value().size(); }
};

} // namespace

TEST_F(ClearRecord, AClearOfAnythingIsUselessOnceTheFilesAreBeingOpened) {
  EXPECT_TRUE(still_needed({}, disk_phase::locked));
  EXPECT_TRUE(still_needed({}, disk_phase::refused));
  EXPECT_FALSE(still_needed({}, disk_phase::starting));
  EXPECT_FALSE(still_needed({}, disk_phase::ready));
  EXPECT_TRUE(still_needed(of_a_volume(), disk_phase::ready)) << "for the next opening";
}

TEST_F(ClearRecord, IsKeptForEachFile) {
  EXPECT_EQ(remember(of_a_volume(), disk_phase::ready).code, errc::ok);
  EXPECT_EQ(of(0), 1u);
  EXPECT_EQ(of(1), 1u);
}

TEST_F(ClearRecord, OfAVolumeThatIsOffOnlyForFilesThatExist) {
  std::ofstream(files[1]) << "x";
  EXPECT_EQ(remember({}, disk_phase::off).code, errc::ok);
  EXPECT_EQ(of(0), 0u);
  EXPECT_EQ(of(1), 1u);
}

TEST_F(ClearRecord, WhileTheVolumeIsOpenedTheClientTriesAgain) {
  auto failure = remember({}, disk_phase::starting);
  EXPECT_EQ(failure.code, errc::busy);
  EXPECT_NE(failure.text.find("try again"), std::string::npos) << failure.text;
  EXPECT_EQ(of(0), 0u);
}

TEST_F(ClearRecord, WhatCannotBeWrittenIsSaid) {
  std::ofstream(state) << "not a folder";
  auto failure = remember({}, disk_phase::refused);
  EXPECT_EQ(failure.code, errc::internal);
  EXPECT_NE(failure.text.find("may be served again"), std::string::npos) << failure.text;
}
