#include "tier/policy/shadow_policies.hpp"

#include "shadow_uses.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace shadow_policies_test {

using test::chunk;
using test::object;
using test::space;
using test::use_of;

TEST(ShadowEntries, FollowThePrefixOnEachRank) {
  auto entries = entries_of(use_of(space({{.name = "kv", .object_bytes = 1 << 20}}, 2), {1, 2}));
  ASSERT_EQ(entries.size(), 4u);
  for (size_t rank : {0, 1}) {
    EXPECT_TRUE(entries[rank].parent.empty());
    EXPECT_EQ(entries[2 + rank].parent, entries[rank].key);
    EXPECT_EQ(entries[rank].bytes, object);
  }
  EXPECT_NE(entries[0].key, entries[1].key);
}

TEST(ShadowEntries, TellTheirSpace) {
  auto key = entries_of(use_of(space({{.name = "kv", .object_bytes = 1 << 20}}, 1, 7), {1}))[0].key;
  EXPECT_TRUE(is_of(space_id{7}, key));
  EXPECT_FALSE(is_of(space_id{1}, key));
}

TEST(ShadowEntries, OfALoadAreThoseOfItsRankAndFollowWhatCameBefore) {
  auto in = space({{.name = "kv", .object_bytes = 1 << 20}}, 2);
  auto whole = entries_of(use_of(in, {1, 2}));
  auto prefix = std::make_shared<chunk_prefix>();
  prefix->chunks = {chunk(2)};
  prefix->parent = chunk(1);
  auto part = entries_of({in, prefix, uint16_t{1}, 0, {}, {}});
  ASSERT_EQ(part.size(), 1u);
  EXPECT_EQ(part[0].key, whole[3].key);
  EXPECT_EQ(part[0].parent, whole[1].key);
}

TEST(ShadowEntries, LeaveOutStatesOfTrailingPoolsAndStoreReplicatedPoolsOnce) {
  auto in = space({{.name = "kv", .object_bytes = 1 << 20, .replicated = true},
                   {.name = "state", .object_bytes = 4096, .rule = hit_rule::trailing_chunks}},
                  4);
  EXPECT_EQ(entries_of(use_of(in, {1, 2, 3})).size(), 3u);
}

TEST(ShadowPolicies, CountWhatEachWouldHaveHit) {
  shadow_policies shadows({{"lru", 10 * object}, {"lru", object}}, policy_clock(), 1);
  auto in = space();
  for (int time = 0; time < 2; ++time)
    shadows.use(use_of(in, {1, 2}));
  auto lines = shadows.report().lines;
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].counts.asked, 4u);
  EXPECT_EQ(lines[0].counts.hits, 2u);
  EXPECT_EQ(lines[1].counts.hits, 1u);
  EXPECT_EQ(lines[1].capacity_bytes, object);
}

TEST(ShadowPolicies, CountAnInferenceOnceUntilItEnds) {
  shadow_policies shadows({{"kmg", 10 * object}}, policy_clock(), 1);
  auto in = space();
  for (int time = 0; time < 2; ++time)
    shadows.use(use_of(in, {1, 2}, 7));
  EXPECT_EQ(shadows.report().lines[0].counts.asked, 2u);
  shadows.end({7, {}, {}});
  shadows.use(use_of(in, {1, 2}, 7));
  EXPECT_EQ(shadows.report().lines[0].counts.asked, 4u);
  shadows.end({8, {}, {}}); // unknown
}

TEST(ShadowPolicies, ForgetASpaceThatIsCleared) {
  shadow_policies shadows({{"lru", 10 * object}}, policy_clock(), 1);
  auto first = space(), second = space({{.name = "kv", .object_bytes = 1 << 20}}, 1, 2);
  shadows.use(use_of(first, {1}));
  shadows.use(use_of(second, {1}));
  shadows.clear({space_id{1}});
  EXPECT_EQ(shadows.report().lines[0].residents, 1u);
  shadows.clear({});
  EXPECT_EQ(shadows.report().lines[0].residents, 0u);
}

} // namespace shadow_policies_test
} // namespace terrace
