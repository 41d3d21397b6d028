#include "tier/policy/second_use.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {
space_ptr space_of(uint32_t number) {
  auto in = std::make_shared<opened_space>();
  in->id = space_id{number};
  return in;
}
} // namespace

TEST(Origins, AreThoseOfTheLastObjectInTheSlot) {
  origins of;
  EXPECT_TRUE(of.parent_of(object_id{7}).empty());
  of.remember(object_id{7}, to_entry_key(key_of(1)));
  EXPECT_EQ(of.parent_of(object_id{7}), to_entry_key(key_of(1)));
  of.remember(object_id{7}, entry_key{});
  EXPECT_TRUE(of.parent_of(object_id{7}).empty());
}

TEST(Origins, KeepACopyOfTheSpaceThatDoesNotKeepItOpen) {
  origins of;
  of.keep();
  resident_table table;
  auto in = space_of(3);
  of.remember(in, table);
  of.remember(in, table);
  of.remember(space_ptr{}, table);
  EXPECT_EQ(of.spaces(), 1u);
  EXPECT_EQ(in.use_count(), 1);
  ASSERT_TRUE(of.space(space_id{3}));
  EXPECT_EQ(of.space(space_id{3})->id, space_id{3});
  EXPECT_FALSE(of.space(space_id{4}));
}

TEST(Origins, SpacesWithoutObjectsAreForgotten) {
  origins of;
  of.keep();
  resident_table table;
  auto key = key_of(1);
  key.space = space_id{1};
  table.insert({key, {}, 0, 4096, 4096, false});
  for (uint32_t n = 1; n <= 1'000; ++n)
    of.remember(space_of(n), table);
  EXPECT_LE(of.spaces(), 64u);
  EXPECT_TRUE(of.space(space_id{1}));
  EXPECT_TRUE(of.space(space_id{1'000}));
}
