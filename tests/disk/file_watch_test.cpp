#include "disk/file_watch.hpp"

#include "disk/damage_log.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace terrace {
namespace {

constexpr file_attributes opened{8, 1, 100, 4096};

TEST(FileWatch, TellsDeletedReplacedAndTruncatedFilesOnce) {
  file_watch watch("/d/f", opened);
  EXPECT_FALSE(watch.look(0, opened));
  EXPECT_TRUE(watch.look(ENOENT, {}));
  EXPECT_EQ(watch.now(), file_damage::deleted);
  EXPECT_NE(watch.reason().find("/d/f was deleted"), std::string::npos);
  EXPECT_FALSE(watch.look(ENOTDIR, {}));
  EXPECT_TRUE(watch.look(0, {8, 1, 101, 4096}));
  EXPECT_EQ(watch.now(), file_damage::replaced);
  EXPECT_FALSE(watch.look(0, {8, 2, 100, 4096})) << "another device at the same place";
  EXPECT_TRUE(watch.look(0, {8, 1, 100, 4095}));
  EXPECT_EQ(watch.now(), file_damage::truncated);
  EXPECT_NE(watch.reason().find("4095 of 4096 bytes"), std::string::npos);
  EXPECT_TRUE(watch.look(0, {8, 1, 100, 5000})) << "a larger one is whole";
  EXPECT_EQ(watch.reason(), "");
}

TEST(FileWatch, OtherErrorsSayNothing) {
  file_watch watch("/d/f", opened);
  EXPECT_FALSE(watch.look(EACCES, {}));
  EXPECT_EQ(watch.now(), file_damage::none);
  watch.look(ENOENT, {});
  EXPECT_FALSE(watch.look(EIO, {}));
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
