#include "group/idle_space_search.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

idle_spaces_answer named(const std::vector<uint32_t>& ids, size_t known) {
  idle_spaces_answer made;
  for (uint32_t id : ids)
    made.idle.push_back({space_id{id}, 1});
  made.known = known;
  return made;
}

std::vector<space_id> spaces(const std::vector<uint32_t>& ids) {
  std::vector<space_id> made;
  for (uint32_t id : ids)
    made.push_back(space_id{id});
  return made;
}

} // namespace

TEST(IdleSpaceSearch, AsksEachTierAboutWhatTheOthersLack) {
  idle_space_search search;
  ASSERT_TRUE(search.apply(named({3, 1, 2}, 5)));
  EXPECT_TRUE(search.looked_at_all()) << "the group names fewer than it may";
  EXPECT_EQ(search.next_tier(2), 0u);
  EXPECT_EQ(search.question().of, spaces({1, 2, 3}));
  search.apply(empty_spaces_answer{{}, spaces({1, 3})});
  EXPECT_EQ(search.next_tier(2), 1u);
  EXPECT_EQ(search.question().of, spaces({1, 3}));
  search.apply(empty_spaces_answer{{}, spaces({3})});
  EXPECT_FALSE(search.next_tier(2));
  ASSERT_EQ(search.empty().size(), 1u);
  EXPECT_EQ(search.empty()[0].id, space_id{3});
}

TEST(IdleSpaceSearch, AsksNobodyIfAllHaveObjects) {
  idle_space_search search;
  ASSERT_TRUE(search.apply(named({1}, 1)));
  EXPECT_EQ(search.next_tier(2), 0u);
  search.apply(empty_spaces_answer{});
  EXPECT_FALSE(search.next_tier(2));
  EXPECT_TRUE(search.empty().empty());
}

TEST(IdleSpaceSearch, EndsWhenAllAreLookedAt) {
  idle_space_search search;
  EXPECT_FALSE(search.apply(named({}, 3)));
  std::vector<uint32_t> many(empty_spaces_request::spaces_max);
  for (uint32_t i = 0; i < many.size(); ++i)
    many[i] = i + 1;
  ASSERT_TRUE(search.apply(named(many, many.size() + 1)));
  EXPECT_FALSE(search.looked_at_all());
  ASSERT_TRUE(search.apply(named(many, many.size() + 1)));
  EXPECT_FALSE(search.apply(named(many, many.size() + 1))) << "it names the same again";
}
