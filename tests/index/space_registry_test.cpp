#include "index/space_registry.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

namespace terrace::test {
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

TEST(SpaceRegistry, OpensAgainByNumberWhatWasOpenedBefore) {
  space_registry registry;
  auto spec = of_model("a");
  spec.salt = "secret";
  space_id id = registry.open(spec).value()->id;
  auto reserved = registry.reserve(of_model("b").fingerprint()).value();
  auto closed = registry.closed(9);
  ASSERT_EQ(closed.size(), 2u);
  EXPECT_EQ(closed[0].id, id);
  ASSERT_TRUE(closed[0].spec);
  EXPECT_EQ(*closed[0].spec, spec);
  EXPECT_EQ(closed[1].spec, nullptr);
  EXPECT_EQ(registry.closed(1).size(), 1u);
  auto again = registry.open(id);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->spec, spec);
  EXPECT_EQ(registry.closed(9).size(), 1u);
  for (space_id unknown : {reserved, space_id{99}})
    EXPECT_EQ(registry.open(unknown).error().code, errc::not_found);
}

TEST(SpaceRegistry, KeepsFieldsWhileThereIsRoom) {
  space_registry registry({.spec_bytes_max = 0});
  space_id id = registry.open(of_model("a")).value()->id;
  EXPECT_EQ(registry.open(id).error().code, errc::not_found);
  EXPECT_EQ(registry.closed(9).front().spec, nullptr);
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

TEST(SpaceRegistry, ASpaceIsOpenWhileSomebodyHasIt) {
  space_registry registry;
  auto space = registry.open(of_model("a")).value();
  auto id = space->id;
  EXPECT_TRUE(registry.idle(9).empty());
  space.reset();
  EXPECT_EQ(registry.find(id), nullptr);
  EXPECT_EQ(registry.size(), 0u);
  EXPECT_EQ(registry.known(), 1u);
  EXPECT_EQ(registry.open(of_model("a")).value()->id, id) << "objects may have its number";
}

TEST(SpaceRegistry, ForgetsIdleSpacesThatWereNotOpenedSince) {
  space_registry registry({.spaces_max = 2});
  auto first = registry.open(of_model("a")).value()->id;
  registry.open(of_model("b"));
  auto idle = registry.idle(9);
  ASSERT_EQ(idle.size(), 2u);
  auto again = registry.open(of_model("b")).value(); // its user may store in it
  EXPECT_EQ(registry.forget(idle), std::vector{first});
  again.reset();
  EXPECT_TRUE(registry.forget(idle).empty());
  auto fresh = registry.open(of_model("a"));
  ASSERT_TRUE(fresh);
  EXPECT_EQ((*fresh)->id, space_id{3}) << "numbers are not used again";
}

TEST(SpaceRegistry, AllIdleSpacesHaveTheirTurn) {
  space_registry registry;
  for (const char* model : {"a", "b", "c"})
    registry.open(of_model(model));
  auto id_of = [](const std::vector<idle_space>& idle, size_t i) {
    return static_cast<uint32_t>(idle.at(i).id);
  };
  EXPECT_EQ(id_of(registry.idle(2), 1), 2u);
  auto rest = registry.idle(2);
  EXPECT_EQ(id_of(rest, 0), 3u);
  EXPECT_EQ(id_of(rest, 1), 1u);
}

TEST(SpaceRegistry, ManySaltsInSequence) {
  space_registry registry({.spaces_max = 64});
  auto spec = of_model("a");
  for (uint32_t tenant = 0; tenant < 200'000; ++tenant) {
    spec.salt = std::to_string(tenant);
    auto opened = registry.open(spec);
    if (!opened) {
      ASSERT_EQ(registry.forget(registry.idle(64)).size(), 64u);
      opened = registry.open(spec);
    }
    ASSERT_TRUE(opened);
  }
  EXPECT_LE(registry.known(), 64u);
}

TEST(SpaceRegistry, ChecksASpecAsItsTrustGroupDemands) {
  auto spec = of_model("a");
  spec.algorithm = hash_algorithm::xxh3_128;
  EXPECT_TRUE(space_registry().open(spec));
  EXPECT_EQ(space_registry({.isolated = true}).open(spec).error().code, errc::denied);
}

} // namespace
} // namespace terrace::test
