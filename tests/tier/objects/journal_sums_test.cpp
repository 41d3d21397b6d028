#include "tier/objects/index_keeping.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

constexpr space_id first{1}, second{2};
uint64_t generation(uint64_t epoch, uint64_t number) { return first_generation(epoch) + number; }

struct JournalSums : ::testing::Test {
  journal_sums told, index;

  void both(space_id in, uint64_t of) {
    told.add(in, of);
    index.add(in, of);
  }
  std::string only() {
    auto all = told.differences(index);
    return all.size() == 1 ? all.front() : std::to_string(all.size()) + " differences";
  }
};

} // namespace

TEST_F(JournalSums, FindsNothingWhereBothHaveTheSame) {
  both(first, generation(1, 1));
  both(second, generation(1, 2));
  both(first, generation(2, 3));
  told.add(first, generation(2, 4));
  told.subtract(first, generation(2, 4));
  EXPECT_TRUE(told.differences(index).empty());
}

TEST_F(JournalSums, NamesObjectsThatItWasNotToldOf) {
  both(first, generation(1, 1));
  index.add(first, generation(1, 2));
  EXPECT_EQ(only(), "it was told of 1 objects of space 1, epoch 1, and the index has 2");
}

TEST_F(JournalSums, NamesObjectsWhoseRemovalItWasNotToldOf) {
  both(first, generation(1, 1));
  told.add(second, generation(1, 2));
  EXPECT_EQ(only(), "it was told of 1 objects of space 2, epoch 1, and the index has 0");
}

TEST_F(JournalSums, NamesOtherObjects) {
  told.add(first, generation(1, 1));
  index.add(first, generation(1, 2));
  EXPECT_EQ(only(), "it was told of 1 objects of space 1, epoch 1, and the index has 1 other ones");
}

TEST_F(JournalSums, NamesAnObjectThatWasRemovedTwice) {
  told.subtract(first, generation(1, 1));
  EXPECT_NE(only().find("it was told of 18446744073709551615 objects of space 1"), std::string::npos)
      << only();
}

TEST_F(JournalSums, WhatWasForgottenMayStillBeServed) {
  both(first, generation(1, 1)); // stored while its space was cleared
  both(second, generation(1, 2));
  both(first, generation(2, 3));
  told.forget(first, 2);
  EXPECT_TRUE(told.differences(index).empty());
  told.forget({}, 2);
  EXPECT_TRUE(told.differences(index).empty());
  index.subtract(first, generation(2, 3));
  EXPECT_EQ(only(), "it was told of 1 objects of space 1, epoch 2, and the index has 0");
}

TEST_F(JournalSums, WhatIsBeingForgottenThereWasNotToldHereYet) {
  told.add(first, generation(1, 1));
  both(second, generation(1, 2));
  index.forget(first, 2);
  EXPECT_TRUE(told.differences(index).empty());
  told.add(first, generation(2, 3));
  EXPECT_EQ(only(), "it was told of 1 objects of space 1, epoch 2, and the index has 0");
  index.forget({}, 3);
  EXPECT_TRUE(told.differences(index).empty());
}
