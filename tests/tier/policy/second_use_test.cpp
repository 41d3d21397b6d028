#include "tier/policy/second_use.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {
object_id id_of(uint32_t slot, uint32_t stay = 1) { return object_id{uint64_t{stay} << 32 | slot}; }
using ids = std::vector<object_id>;
} // namespace

TEST(SecondUse, IsToldOnceInTheOrderOfTheChain) {
  second_use uses;
  EXPECT_EQ(uses.take({id_of(2), id_of(1), id_of(0)}), (ids{id_of(0), id_of(1), id_of(2)}));
  EXPECT_EQ(uses.take({id_of(3), id_of(1)}), ids{id_of(3)});
  EXPECT_TRUE(uses.take({id_of(3), id_of(3)}).empty());
}

TEST(SecondUse, AnObjectThatComesAgainIsAnother) {
  second_use uses;
  uses.take({id_of(5)});
  EXPECT_EQ(uses.take({id_of(5, 2)}), ids{id_of(5, 2)});
}

TEST(SecondUse, WhatWasNotWrittenIsToldAgain) {
  second_use uses;
  uses.take({id_of(0), id_of(1)});
  uses.forget({id_of(1), id_of(7), id_of(0, 9)}); // the others are unknown
  EXPECT_EQ(uses.take({id_of(1), id_of(0)}), ids{id_of(1)});
}

TEST(SecondUse, IsRememberedOfAStay) {
  second_use uses;
  EXPECT_FALSE(uses.was_used(id_of(0)));
  EXPECT_FALSE(uses.was_used(object_id{}));
  uses.take({id_of(2), id_of(5), id_of(7, 0x7fffffff)});
  EXPECT_TRUE(uses.was_used(id_of(2)));
  EXPECT_TRUE(uses.was_used(id_of(7, 0x7fffffff)));
  EXPECT_FALSE(uses.was_used(id_of(0))) << "another one";
  EXPECT_FALSE(uses.was_used(object_id{}));
  EXPECT_FALSE(uses.was_used(id_of(2, 2))) << "a later stay";
  EXPECT_FALSE(uses.was_used(id_of(9'999)));
  uses.forget({id_of(5)});
  EXPECT_TRUE(uses.was_used(id_of(5))) << "it was used all the same";
}
