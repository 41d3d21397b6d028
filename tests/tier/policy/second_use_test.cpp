#include "tier/policy/second_use.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {
object_id id_of(uint32_t slot, uint32_t stay = 1) { return object_id{uint64_t{stay} << 32 | slot}; }
using ids = std::vector<object_id>;

struct SecondUse : ::testing::Test {
  second_use uses;

  SecondUse() { uses.watch(); }
  ids use(const ids& used) {
    for (object_id id : used)
      uses.used(id);
    return uses.take();
  }
  bool was_used(object_id id) const { return !uses.used_twice({id}).empty(); }
};

} // namespace

TEST_F(SecondUse, IsToldOnceInTheOrderOfTheChain) {
  EXPECT_EQ(use({id_of(2), id_of(1), id_of(0)}), (ids{id_of(0), id_of(1), id_of(2)}));
  EXPECT_EQ(use({id_of(3), id_of(1)}), ids{id_of(3)});
  EXPECT_TRUE(use({id_of(3), id_of(3)}).empty());
}

TEST_F(SecondUse, AnObjectThatComesAgainIsAnother) {
  use({id_of(5)});
  EXPECT_EQ(use({id_of(5, 2)}), ids{id_of(5, 2)});
}

TEST_F(SecondUse, WhatWasNotWrittenIsToldAgain) {
  use({id_of(0), id_of(1)});
  uses.forget({id_of(1), id_of(7), id_of(0, 9)}); // the others are unknown
  EXPECT_EQ(use({id_of(1), id_of(0)}), ids{id_of(1)});
}

TEST_F(SecondUse, IsRememberedOfAStay) {
  EXPECT_FALSE(was_used(id_of(0)));
  EXPECT_FALSE(was_used(object_id{}));
  use({id_of(2), id_of(5), id_of(7, 0x7fffffff)});
  EXPECT_TRUE(was_used(id_of(2)));
  EXPECT_TRUE(was_used(id_of(7, 0x7fffffff)));
  EXPECT_FALSE(was_used(id_of(0))) << "another one";
  EXPECT_FALSE(was_used(object_id{}));
  EXPECT_FALSE(was_used(id_of(2, 2))) << "a later stay";
  EXPECT_FALSE(was_used(id_of(9'999)));
  uses.forget({id_of(5)});
  EXPECT_TRUE(was_used(id_of(5))) << "it was used all the same";
}
