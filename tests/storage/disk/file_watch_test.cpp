#include "storage/disk/path_health.hpp"

#include "storage/disk/damage_reports.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace terrace {
namespace {

using news = file_watch::news;

constexpr file_attributes opened{8, 1, 100, 4096};

TEST(FileWatch, TellsDeletedReplacedAndTruncatedFilesOnce) {
  file_watch watch("/d/f", opened);
  EXPECT_EQ(watch.look(0, opened), news::none);
  EXPECT_EQ(watch.look(ENOENT, {}), news::changed);
  EXPECT_EQ(watch.now(), file_damage::deleted);
  EXPECT_NE(watch.reason().find("/d/f was deleted"), std::string::npos);
  EXPECT_EQ(watch.look(ENOTDIR, {}), news::none);
  EXPECT_EQ(watch.look(0, {8, 1, 101, 4096}), news::changed);
  EXPECT_EQ(watch.now(), file_damage::replaced);
  EXPECT_EQ(watch.look(0, {8, 2, 100, 4096}), news::none) << "another device at the same place";
  EXPECT_EQ(watch.look(0, {8, 1, 100, 4095}), news::changed);
  EXPECT_EQ(watch.now(), file_damage::truncated);
  EXPECT_NE(watch.reason().find("4095 bytes of 4096 bytes"), std::string::npos);
  EXPECT_EQ(watch.look(0, {8, 1, 100, 5000}), news::changed) << "a larger one is whole";
  EXPECT_EQ(watch.reason(), "");
}

TEST(FileWatch, TellsAFileWhoseBeginningWasOverwritten) {
  file_watch watch("/d/f", opened);
  watch.begins(true);
  EXPECT_EQ(watch.look(0, opened), news::none);
  watch.begins(false);
  EXPECT_EQ(watch.look(0, opened), news::changed);
  EXPECT_EQ(watch.now(), file_damage::overwritten);
  EXPECT_NE(watch.reason().find("/d/f no longer begins with its superblock"), std::string::npos);
  EXPECT_EQ(watch.look(ENOENT, {}), news::changed) << "what is worse comes first";
  EXPECT_EQ(watch.look(0, opened), news::changed);
  watch.begins(true);
  EXPECT_EQ(watch.look(0, opened), news::changed);
  EXPECT_EQ(watch.reason(), "");
}

TEST(FileWatch, WhatWasClearedIsFoundAgainWithoutBeingNew) {
  file_watch watch("/d/f", opened);
  EXPECT_EQ(watch.look(ENOENT, {}), news::changed);
  watch.clear();
  EXPECT_EQ(watch.reason(), "");
  EXPECT_EQ(watch.look(EIO, {}), news::none);
  EXPECT_EQ(watch.look(ENOENT, {}), news::again);
  EXPECT_EQ(watch.now(), file_damage::deleted);
  EXPECT_EQ(watch.look(0, opened), news::changed);
}

TEST(FileWatch, AWriteThatSucceedsDoesNotMeanThatTheBeginningIsBack) {
  file_watch watch("/d/f", opened);
  watch.begins(false);
  EXPECT_EQ(watch.look(0, opened), news::changed);
  watch.clear();
  EXPECT_EQ(watch.reason(), "");
  EXPECT_EQ(watch.look(0, opened), news::again)
      << "and not a file that is whole again, and then another damage";
  EXPECT_EQ(watch.now(), file_damage::overwritten);
}

TEST(FileWatch, OtherErrorsSayNothing) {
  file_watch watch("/d/f", opened);
  EXPECT_EQ(watch.look(EACCES, {}), news::none);
  EXPECT_EQ(watch.now(), file_damage::none);
  watch.look(ENOENT, {});
  EXPECT_EQ(watch.look(EIO, {}), news::none);
  EXPECT_EQ(watch.now(), file_damage::deleted);
}

TEST(DamageLog, TellsAtOnceAndThenOnceAMinuteWithAllThereWere) {
  damage_log log;
  damage_log::time_point now{};
  EXPECT_EQ(log.notice("f"), "");
  auto first = log.add("f", 1, now);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->find("f: 1 object was damaged (1 since the start)"), 0u) << *first;
  EXPECT_FALSE(log.add("f", 5, now + std::chrono::seconds(59)));
  auto second = log.add("f", 2, now + std::chrono::seconds(60));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->find("f: 7 objects were damaged (8 since the start)"), 0u) << *second;
  EXPECT_NE(log.notice("f").find("8 damaged objects"), std::string::npos);
}

} // namespace
} // namespace terrace
