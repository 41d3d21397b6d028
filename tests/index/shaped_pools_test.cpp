#include "index/space_spec.hpp"

#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

namespace terrace::test {
namespace {

pool_spec shaped(uint32_t layers) {
  return {.name = "kv", .tensors = {{.dtype = "bfloat16", .layers = layers, .hidden = 128}}};
}

std::string why_not(const pool_spec& pool, uint32_t groups) {
  auto made = shaped_pools(pool, groups, 64);
  return made ? "" : made.error().text;
}

TEST(ShapedPools, GetTheirBytesFromTheirTensors) {
  auto pools = shaped_pools(shaped(4), 1, 64);
  ASSERT_TRUE(pools);
  ASSERT_EQ(pools->size(), 1u);
  EXPECT_EQ((*pools)[0].name, "kv");
  EXPECT_EQ((*pools)[0].object_bytes, 2u * 4 * 64 * 128 * 2);
}

TEST(ShapedPools, HaveAPoolForEachLayerGroup) {
  auto stated = shaped(5);
  stated.replicated = true;
  auto pools = shaped_pools(stated, 2, 64);
  ASSERT_TRUE(pools);
  ASSERT_EQ(pools->size(), 2u);
  EXPECT_EQ((*pools)[0].name, "kv.0");
  EXPECT_EQ((*pools)[1].name, "kv.1");
  EXPECT_EQ((*pools)[0].object_bytes, 2u * 2 * 64 * 128 * 2);
  EXPECT_EQ((*pools)[1].object_bytes, 2u * 3 * 64 * 128 * 2);
  EXPECT_EQ((*pools)[1].tensors[0].first_layer, 2u);
  EXPECT_TRUE((*pools)[1].replicated);
}

TEST(ShapedPools, WithoutTensorsAreAsTheyCame) {
  pool_spec plain{.name = "kv", .object_bytes = 77};
  auto pools = shaped_pools(plain, 1, 64);
  ASSERT_TRUE(pools);
  EXPECT_EQ((*pools)[0], plain);
}

TEST(ShapedPools, MakeASpaceThatIsValidAndTheSameHoweverItWasStated) {
  auto spec = small_space();
  spec.pools = *shaped_pools(shaped(4), 2, spec.chunk_tokens);
  EXPECT_TRUE(spec.validate(true));
  auto again = spec;
  again.pools.clear();
  for (auto& pool : spec.pools)
    again.pools.push_back(shaped_pools(pool, 1, spec.chunk_tokens)->front());
  EXPECT_EQ(again.fingerprint(), spec.fingerprint());
}

TEST(ShapedPools, SayWhatContradicts) {
  EXPECT_EQ(why_not({.name = "raw", .object_bytes = 1}, 2),
            "pool 'raw' has 2 layer groups but no tensors: expected tensors, whose layers can be divided, or "
            "one group");
  EXPECT_EQ(why_not(shaped(2), 3),
            "pool 'kv': tensor: layers is 2: expected at least as many as layer groups, of "
            "which there are 3");
  auto wrong = shaped(1);
  wrong.object_bytes = 1;
  EXPECT_EQ(why_not(wrong, 1), "pool 'kv': object_bytes is 1: expected 0, or 32768, the size of its tensors");
  EXPECT_EQ(why_not(shaped(200), 129), "pool 'kv' has 129 layer groups: expected at most 128");
  EXPECT_EQ(why_not(shaped(0), 1), "pool 'kv': tensor: layers is 0: expected 1 to 4096");
}

} // namespace
} // namespace terrace::test
