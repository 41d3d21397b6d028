#include "index/space_registry.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

namespace terrace::testing {
namespace {

space_spec of_model(const std::string& model) {
  auto spec = small_space();
  spec.model = model;
  return spec;
}

TEST(SpaceRegistry, GivesTheSameSpecTheSameSpace) {
  space_registry registry;
  auto first = registry.open(of_model("a")).value(), second = registry.open(of_model("b")).value();
  EXPECT_EQ(first->id, space_id{1});
  EXPECT_EQ(second->id, space_id{2});
  EXPECT_EQ(registry.open(of_model("a")).value(), first);
  EXPECT_EQ(first->fingerprint, of_model("a").fingerprint());
  EXPECT_EQ(registry.size(), 2u);
}

TEST(SpaceRegistry, FindsByNumber) {
  space_registry registry;
  auto space = registry.open(of_model("a")).value();
  EXPECT_EQ(registry.find(space->id), space);
  EXPECT_EQ(registry.find(space_id{0}), nullptr);
  EXPECT_EQ(registry.find(space_id{2}), nullptr);
}

TEST(SpaceRegistry, AReservedNumberIsThatOfTheSpaceOnceItIsOpened) {
  space_registry registry;
  auto reserved = registry.reserve(of_model("a").fingerprint());
  ASSERT_TRUE(reserved);
  EXPECT_EQ(registry.reserve(of_model("a").fingerprint()), reserved);
  EXPECT_EQ(registry.find(*reserved), nullptr);
  EXPECT_EQ(registry.size(), 0u);
  auto other = registry.open(of_model("b")).value();
  EXPECT_NE(other->id, *reserved);
  EXPECT_EQ(registry.list(9), std::vector{other});
  auto opened = registry.open(of_model("a")).value();
  EXPECT_EQ(opened->id, *reserved);
  EXPECT_EQ(registry.find(*reserved), opened);
  EXPECT_EQ(registry.list(9), (std::vector{opened, other}));
  EXPECT_EQ(registry.list(1), std::vector{opened});
}

TEST(SpaceRegistry, HasABound) {
  space_registry registry({.spaces_max = 1});
  ASSERT_TRUE(registry.open(of_model("a")));
  auto refused = registry.open(of_model("b"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::busy);
  EXPECT_TRUE(registry.open(of_model("a")));
  EXPECT_EQ(registry.reserve(of_model("b").fingerprint()).error().code, errc::busy);
}

TEST(SpaceRegistry, ChecksASpecAsItsTrustGroupDemands) {
  auto spec = of_model("a");
  spec.algorithm = hash_algorithm::xxh3_128;
  EXPECT_TRUE(space_registry().open(spec));
  EXPECT_EQ(space_registry({.isolated = true}).open(spec).error().code, errc::denied);
}

} // namespace
} // namespace terrace::testing
