#include "group/announcements.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

using namespace terrace;

namespace {

lookup_id named(uint32_t number) {
  lookup_id id;
  for (size_t i = 0; i < 4; ++i)
    id.bytes[i] = static_cast<uint8_t>(number >> (8 * i));
  return id;
}

struct Announcements : ::testing::Test {
  std::shared_ptr<announcements> all = std::make_shared<announcements>();
  context_ptr live = std::make_shared<request_context>();

  announcements::owner begun(uint32_t number, uint32_t chunks) {
    auto made = all->begin(named(number), chunks);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
};

TEST_F(Announcements, TellHowFarTheyHaveGot) {
  EXPECT_FALSE(all->of(named(1)));
  auto owner = begun(1, 8);
  EXPECT_EQ(all->of(named(1))->chunks, 8U);
  EXPECT_EQ(all->of(named(1))->found, 0U);
  owner.found(3);
  owner.found(2); // evicted meanwhile
  EXPECT_EQ(all->of(named(1))->found, 3U);
  EXPECT_FALSE(all->of(named(1))->ended);
}

TEST_F(Announcements, EndWithTheirOwner) {
  std::optional<announcements::owner> owner = begun(1, 8);
  auto moved = std::make_optional(std::move(*owner));
  owner.reset();
  EXPECT_FALSE(all->of(named(1))->ended) << "it was moved";
  moved.reset();
  EXPECT_TRUE(all->of(named(1))->ended);
}

TEST_F(Announcements, ANameIsUsedOnceAtATime) {
  {
    auto owner = begun(1, 8);
    auto again = all->begin(named(1), 8);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, errc::bad_request);
    EXPECT_FALSE(all->of(named(1))->ended);
  }
  auto owner = begun(1, 4);
  EXPECT_FALSE(all->of(named(1))->ended);
  EXPECT_EQ(all->of(named(1))->chunks, 4U);
}

TEST_F(Announcements, AreForgottenLongAfterTheirEnd) {
  { auto first = begun(0, 1); }
  { auto second = begun(1, 1); }
  auto again = begun(0, 2); // in progress, whatever becomes of its first use
  for (uint32_t i = 2; i < announcements::ended_max + 2; ++i)
    auto owner = begun(i, 1);
  EXPECT_FALSE(all->of(named(1)));
  ASSERT_TRUE(all->of(named(0)));
  EXPECT_FALSE(all->of(named(0))->ended);
  EXPECT_TRUE(all->of(named(2))->ended);
}

TEST_F(Announcements, WhoFollowsIsToldOfEachChange) {
  int told = 0;
  auto wait = [&] { all->changes().wait(all->changes().now(), live, [&] { ++told; }); };
  wait();
  std::optional<announcements::owner> owner = begun(1, 8);
  EXPECT_EQ(told, 1);
  wait();
  owner->found(0);
  EXPECT_EQ(told, 1) << "nothing has changed";
  owner->found(1);
  EXPECT_EQ(told, 2);
  wait();
  owner.reset();
  EXPECT_EQ(told, 3);
}

TEST_F(Announcements, StoresCountWhileSomethingIsAnnounced) {
  const uint64_t before = all->stores().now();
  all->stored();
  EXPECT_EQ(all->stores().now(), before);
  {
    auto one = begun(1, 8);
    auto two = begun(2, 8);
    all->stored();
    EXPECT_EQ(all->stores().now(), before + 1);
  }
  all->stored();
  EXPECT_EQ(all->stores().now(), before + 1);
}

} // namespace
