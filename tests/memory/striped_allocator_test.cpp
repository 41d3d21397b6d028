#include "memory/striped_allocator.hpp"

#include "tests/memory/allocator_contract.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace terrace {
namespace {

constexpr uint64_t kib = 1024;
constexpr uint64_t unit = 4 * kib;

bool always(size_t) { return true; }

std::unique_ptr<striped_allocator>
striped(std::string_view name, std::vector<uint64_t> bytes, striped_allocator::path_check usable = always,
        allocator_options options = {.boundary_bytes = 0, .slot_bytes = unit}) {
  std::vector<std::unique_ptr<allocator>> paths;
  for (uint64_t each : bytes) {
    options.capacity_bytes = each;
    paths.push_back(make_allocator(name, options).value());
  }
  return std::make_unique<striped_allocator>(std::move(paths), path_map(bytes), std::move(usable));
}

class StripedContract : public ::testing::TestWithParam<std::string_view> {
 protected:
  /// A path is a segment: where the contract checks boundaries, growth and removed segments, this checks paths.
  static void check(size_t paths, uint64_t path_bytes) {
    allocator_options all{.capacity_bytes = paths * path_bytes,
                          .alignment_bytes = unit,
                          .boundary_bytes = path_bytes,
                          .slot_bytes = 5000};
    uint64_t seed = test::test_seed();
    SCOPED_TRACE(test::seed_text(seed));
    auto make = [&]() -> std::unique_ptr<allocator> {
      return striped(GetParam(), std::vector<uint64_t>(paths, path_bytes), always, all);
    };
    auto broken = test::broken_promise(make, all, seed, 3'000);
    EXPECT_FALSE(broken) << *broken;
  }
};

TEST_P(StripedContract, HoldsOnOnePath) { check(1, 256 * kib); }
TEST_P(StripedContract, HoldsOnTwoPaths) { check(2, 128 * kib); }
TEST_P(StripedContract, HoldsOnFivePaths) { check(5, 64 * kib); }

INSTANTIATE_TEST_SUITE_P(Registry, StripedContract, ::testing::ValuesIn(allocator_names()),
                         [](const auto& of) { return std::string(of.param); });

class Striped : public ::testing::Test {
 protected:
  void make(std::vector<uint64_t> units, std::string_view name = "free_list") {
    for (uint64_t& each : units)
      each *= unit;
    map_.emplace(units);
    down_.assign(units.size(), false);
    space_ = striped(name, units, [this](size_t path) { return !down_[path]; });
  }
  /// Returns the paths of `objects` objects of `units` units, as digits.
  std::string paths_of(size_t objects, uint64_t units = 1) {
    auto taken = space_->allocate(std::vector<uint64_t>(objects, units * unit));
    if (!taken)
      return taken.error().text;
    std::string text;
    for (const extent& e : *taken) {
      text += static_cast<char>('0' + map_->path_of(e.offset));
      held_.push_back(e);
    }
    return text;
  }
  std::string on(const std::vector<size_t>& chosen) {
    std::string text;
    for (size_t i : chosen)
      text += static_cast<char>('0' + map_->path_of(held_[i].offset));
    return text;
  }
  void leave(const std::vector<size_t>& chosen) {
    std::vector<extent> back;
    for (size_t i : chosen)
      back.push_back(held_[i]);
    space_->free(back);
  }

  std::optional<path_map> map_;
  std::vector<bool> down_;
  std::unique_ptr<striped_allocator> space_;
  std::vector<extent> held_;
};

TEST_F(Striped, ObjectsOfABatchGoRoundThePaths) {
  make({100, 100, 100});
  EXPECT_EQ(paths_of(6), "012012");
}

TEST_F(Striped, SoDoBatchesOfOne) {
  make({100, 100, 100});
  std::string all;
  for (int i = 0; i < 6; ++i)
    all += paths_of(1);
  EXPECT_EQ(all, "012012");
}

TEST_F(Striped, APathWithMoreRoomGetsMoreTurns) {
  make({100, 300});
  std::string all = paths_of(40);
  EXPECT_NEAR(static_cast<double>(std::count(all.begin(), all.end(), '0')), 10, 2);
  EXPECT_EQ(all.find("11111"), std::string::npos) << all;
}

TEST_F(Striped, FillsEveryPathToTheLastByte) {
  make({3, 40, 7});
  std::string all;
  for (int i = 0; i < 50; ++i)
    all += paths_of(1);
  EXPECT_EQ(all.size(), 50u);
  EXPECT_EQ(space_->usage().free_bytes, 0u);
  EXPECT_FALSE(space_->allocate({{1}}));
}

TEST_F(Striped, APathThatIsOutGetsNothing) {
  make({100, 100, 100});
  down_[1] = true;
  EXPECT_EQ(paths_of(4), "0202");
  down_[1] = false;
  std::string all = paths_of(6);
  EXPECT_NE(all.find('1'), std::string::npos) << all;
}

TEST_F(Striped, HasRoomOnUsablePathsAlone) {
  make({10, 4});
  paths_of(4);
  EXPECT_EQ(space_->room_bytes(), 10 * unit);
  down_[0] = true;
  uint64_t room = space_->room_bytes();
  down_ = {false, true};
  EXPECT_LE(room, 4 * unit);
  EXPECT_EQ(room + space_->room_bytes(), 10 * unit);
  EXPECT_EQ(space_->usage().free_bytes, 10 * unit);
}

TEST_F(Striped, WithoutAPathThereIsNoSpace) {
  make({10, 10});
  down_ = {true, true};
  auto taken = space_->allocate({{unit}});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, errc::no_space);
  EXPECT_EQ(space_->usage().largest_free_run, 0u);
  EXPECT_EQ(space_->usage().free_bytes, 20 * unit);
  EXPECT_EQ(space_->room_bytes(), 0u);
}

TEST_F(Striped, AnObjectThatOnlyOnePathCanHoldGoesThere) {
  make({4, 16});
  EXPECT_EQ(paths_of(1, 10), "1");
  EXPECT_EQ(paths_of(2, 3), "10");
}

TEST_F(Striped, AnObjectGoesToThePathThatHasARunForIt) {
  make({8, 8});
  paths_of(16);
  std::vector<size_t> back;
  for (size_t i = 0; i < held_.size(); ++i) {
    uint64_t at = held_[i].offset / unit;
    if (at == 0 || at == 2 || at == 4 || at == 6 || at == 12 || at == 13) // path 1 has a run of two
      back.push_back(i);
  }
  leave(back);
  EXPECT_EQ(paths_of(1, 2), "1");
  EXPECT_EQ(paths_of(4), "0000");
}

TEST_F(Striped, VictimsForOneObjectLieOnThePathWhoseTurnToLeaveIsFirst) {
  make({4, 4});
  EXPECT_EQ(paths_of(8).substr(0, 2), "01");
  std::swap(held_[0], held_[1]);
  uint64_t size = unit;
  auto chosen = space_->choose({&size, 1}, held_);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(on(*chosen), "1");
}

TEST_F(Striped, VictimsOnAPathThatIsOutLeaveInTheirTurnAndMakeNoRoom) {
  make({4, 4});
  std::string where = paths_of(8);
  down_[0] = true;
  std::vector<uint64_t> sizes{unit, unit};
  auto chosen = space_->choose(sizes, held_);
  ASSERT_TRUE(chosen);
  std::vector<size_t> expected(where.find('1', where.find('1') + 1) + 1); // up to the second object of path 1
  std::iota(expected.begin(), expected.end(), size_t{0});
  EXPECT_EQ(*chosen, expected);
  leave(*chosen);
  held_.clear();
  EXPECT_EQ(paths_of(2), "11");
}

TEST_F(Striped, NothingIsChosenWhereOnlyPathsThatAreOutCouldMakeRoom) {
  make({4, 4});
  paths_of(8);
  down_ = {true, true};
  uint64_t size = unit;
  EXPECT_FALSE(space_->choose({&size, 1}, held_));
  EXPECT_FALSE(space_->choose(std::vector<uint64_t>{unit, unit}, held_));
}

TEST_F(Striped, AChoiceForABatchIsEnoughWhereverItsObjectsLie) {
  uint64_t seed = test::test_seed();
  SCOPED_TRACE(test::seed_text(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    make({16 + random() % 16, 16 + random() % 16, 16 + random() % 16}, "size_class");
    held_.clear();
    for (uint64_t units = 1; units < 6; units = 1 + random() % 6)
      for (int i = 0; i < 20; ++i)
        if (auto taken = space_->allocate({{units * unit}}))
          held_.push_back(taken->front());
    down_[random() % 3] = random() % 2 == 0;
    std::shuffle(held_.begin(), held_.end(), random);
    std::vector<uint64_t> sizes(2 + random() % 6);
    for (uint64_t& size : sizes)
      size = unit * (1 + random() % 6);
    auto chosen = space_->choose(sizes, held_);
    if (!chosen)
      continue;
    leave(*chosen);
    auto taken = space_->allocate(sizes);
    ASSERT_TRUE(taken) << taken.error().text;
    for (const extent& e : *taken)
      EXPECT_FALSE(down_[map_->path_of(e.offset)]);
  }
}

TEST(PathMap, KnowsWhichPathAnOffsetIsOn) {
  path_map map(std::vector<uint64_t>{10, 20, 30});
  EXPECT_EQ(map.paths(), 3u);
  EXPECT_EQ(map.path_of(0), 0u);
  EXPECT_EQ(map.path_of(9), 0u);
  EXPECT_EQ(map.path_of(10), 1u);
  EXPECT_EQ(map.path_of(29), 1u);
  EXPECT_EQ(map.path_of(30), 2u);
  EXPECT_EQ(map.local(35), 5u);
  EXPECT_EQ(map.begin(2), 30u);
  EXPECT_EQ(map.end(2), 60u);
}

} // namespace
} // namespace terrace
