#include "tier/second_use.hpp"

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
