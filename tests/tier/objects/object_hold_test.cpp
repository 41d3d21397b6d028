// Tests what handles give back to their tier, and that they do so once.
#include "tier/objects/object_hold.hpp"
#include "tier/space/write_credit.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

using namespace terrace;

namespace object_hold_test {

struct recording_sink final : release_sink {
  std::vector<object_id> released;
  std::vector<object_id> abandoned;
  size_t calls = 0;
  void release(std::vector<object_id> held) override {
    ++calls;
    released.insert(released.end(), held.begin(), held.end());
  }
  void abandon(std::vector<object_id> reserved) override {
    ++calls;
    abandoned.insert(abandoned.end(), reserved.begin(), reserved.end());
  }
};

struct recording_credit_sink final : credit_sink {
  uint64_t back = 0;
  void give_back(uint64_t bytes) override { back += bytes; }
};

using ids = std::vector<object_id>;

/// Makes places of objects with these ids; 0 is absent.
std::vector<object_place> places(std::initializer_list<uint64_t> of) {
  std::vector<object_place> made;
  for (uint64_t id : of)
    made.push_back({.id = object_id{id}});
  return made;
}

ids numbers(std::initializer_list<uint64_t> of) {
  ids made;
  for (uint64_t id : of)
    made.push_back(object_id{id});
  return made;
}

struct ObjectHold : ::testing::Test {
  std::shared_ptr<recording_sink> tier = std::make_shared<recording_sink>();
  hold_ptr hold(std::initializer_list<uint64_t> of) {
    return std::make_shared<object_hold>(tier, places(of));
  }
};

TEST_F(ObjectHold, TheSinkLooksThroughManyPlaces) {
  struct places_sink final : release_sink {
    size_t places = 0, present = 0;
    void release(std::vector<object_id>) override {}
    void release_places(std::vector<object_place> held) override {
      places += held.size();
      present += ids_of(held).size();
    }
    void abandon(std::vector<object_id>) override {}
  };
  auto sink = std::make_shared<places_sink>();
  std::vector<object_place> many(object_hold::many_places);
  many[3].id = object_id{7};
  { object_hold hold(sink, many); }
  EXPECT_EQ(sink->places, object_hold::many_places);
  EXPECT_EQ(sink->present, 1u);
  { object_hold hold(tier, many); }
  EXPECT_EQ(tier->released, numbers({7})) << "others are given the objects";
}

TEST_F(ObjectHold, GivesBackEverythingPresentInOneCall) {
  auto held = hold({1, 0, 3});
  auto copy = held;
  held.reset();
  EXPECT_EQ(tier->calls, 0u);
  copy.reset();
  EXPECT_EQ(tier->released, numbers({1, 3}));
  EXPECT_EQ(tier->calls, 1u);
}

TEST_F(ObjectHold, GivesNothingBackTwice) {
  auto held = hold({1, 2, 3, 4, 5});
  held->keep_first(4);
  EXPECT_EQ(tier->released, numbers({5}));
  held->keep_only({true, false, false, true});
  EXPECT_EQ(tier->released, numbers({5, 2, 3}));
  held->keep_only({true, false, false, true});
  held.reset();
  EXPECT_EQ(tier->released, numbers({5, 2, 3, 1, 4}));
}

TEST_F(ObjectHold, GivesBackInParts) {
  auto held = hold({1, 2, 3, 4, 5});
  EXPECT_TRUE(held->keep_first(1, 3));
  EXPECT_EQ(tier->released, numbers({3, 4, 5})) << "from the end";
  EXPECT_FALSE(held->keep_first(1, 3));
  EXPECT_EQ(tier->released, numbers({3, 4, 5, 2}));
  EXPECT_FALSE(held->keep_first(1, 3));
  EXPECT_TRUE(held->keep_first(4, 2)) << "absent places are added in parts too";
  EXPECT_FALSE(held->keep_first(4, 2));
  EXPECT_EQ(held->places().size(), 4u);
  held->keep_only({false, true, true, true}, 1, 3);
  EXPECT_EQ(tier->released.size(), 4u);
  held->keep_only({false, true, true, true}, 0, 1);
  EXPECT_EQ(tier->released, numbers({3, 4, 5, 2, 1}));
}

TEST_F(ObjectHold, GoesUpToWhereAnotherIsAppended) {
  auto whole = std::make_shared<object_hold>();
  auto part = hold({7, 8});
  whole->append(2, std::move(*part));
  part.reset();
  EXPECT_EQ(tier->calls, 0u);
  ASSERT_EQ(whole->places().size(), 4u);
  EXPECT_FALSE(whole->places()[1].present());
  EXPECT_EQ(whole->places()[2].id, object_id{7});
  whole->append(4, std::move(*hold({9})));
  whole.reset();
  EXPECT_EQ(tier->released, numbers({7, 8, 9}));
}

TEST_F(ObjectHold, WithNothingPresentSaysNothing) {
  hold({0, 0}).reset();
  std::make_shared<object_hold>().reset();
  std::make_shared<object_hold>(nullptr, places({1})).reset();
  EXPECT_EQ(tier->calls, 0u);
}

TEST_F(ObjectHold, MayEndOnAnyThread) {
  auto held = hold({1});
  std::thread other([last = std::move(held)]() mutable { last.reset(); });
  other.join();
  EXPECT_EQ(tier->released, numbers({1}));
}

TEST_F(ObjectHold, KeepsItsTiersSinkAlive) {
  auto held = hold({1});
  std::weak_ptr<recording_sink> watched = tier;
  tier.reset();
  EXPECT_FALSE(watched.expired());
  held.reset();
  EXPECT_TRUE(watched.expired());
}

TEST_F(ObjectHold, APartKeepsAllOfIt) {
  auto held = hold({1, 2, 3, 4});
  auto part = part_of(held, 1, 3);
  ASSERT_EQ(part->places().size(), 2u);
  EXPECT_EQ(part->places()[0].id, object_id{2});
  EXPECT_EQ(part->places()[1].id, object_id{3});
  auto rest = part_of(part, std::vector{part->places()[1]});
  held.reset();
  part.reset();
  EXPECT_EQ(tier->calls, 0u);
  EXPECT_EQ(rest->places()[0].id, object_id{3});
  rest.reset();
  EXPECT_EQ(tier->released, numbers({1, 2, 3, 4}));
  EXPECT_EQ(tier->calls, 1u);
}

TEST(ObjectReservation, IsAbandonedOnceWithItsLastCopy) {
  auto tier = std::make_shared<recording_sink>();
  auto reserved = std::make_shared<object_reservation>(tier, numbers({4, 5}));
  auto copy = reserved;
  reserved.reset();
  EXPECT_EQ(tier->calls, 0u);
  copy.reset();
  EXPECT_EQ(tier->abandoned, numbers({4, 5}));
  std::make_shared<object_reservation>(tier, ids{}).reset();
  EXPECT_EQ(tier->calls, 1u);
}

TEST(ObjectReservation, SendsNothingOnceAllIsPublished) {
  auto tier = std::make_shared<recording_sink>();
  auto whole = std::make_shared<object_reservation>(tier, numbers({4, 5}));
  whole->note_published(2);
  whole.reset();
  EXPECT_EQ(tier->calls, 0u);
  auto part = std::make_shared<object_reservation>(tier, numbers({6, 7}));
  part->note_published(1);
  part.reset();
  EXPECT_EQ(tier->abandoned, numbers({6, 7})); // the tier knows which of them is published
}

TEST(WriteCredit, GoesBackOnceWithItsLastCopy) {
  auto from = std::make_shared<recording_credit_sink>();
  credit_ptr credit = std::make_shared<write_credit>(from, 100);
  credit_ptr copy = credit;
  credit.reset();
  EXPECT_EQ(from->back, 0u);
  copy.reset();
  EXPECT_EQ(from->back, 100u);
}

} // namespace object_hold_test
