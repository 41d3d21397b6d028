#include "connection/status_tables.hpp"

#include "index/space_spec.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

using namespace terrace;

TEST(OpenPools, AreTheSpacesWithThePlacesOfTheirTensors) {
  auto spec = terrace::test::small_space(); // chunks of 64 tokens
  pool_spec layered{.name = "layers"};
  layered.tensors = {{tensor_format::kv_2ltd, "bfloat16", 2, 4, 8, 0},
                     {tensor_format::kv_mla, "fp8", 1, 4, 16, 4}};
  auto groups = shaped_pools(layered, 2, spec.chunk_tokens);
  ASSERT_TRUE(groups) << groups.error().text;
  spec.pools.insert(spec.pools.end(), groups->begin(), groups->end());
  flatbuffers::FlatBufferBuilder body;
  body.Finish(write_open_pools(body, spec));
  const auto* written =
      flatbuffers::GetRoot<flatbuffers::Vector<flatbuffers::Offset<wire::OpenPool>>>(body.GetBufferPointer());
  ASSERT_EQ(written->size(), 3u);
  EXPECT_EQ(written->Get(0)->name()->str(), "kv");
  EXPECT_EQ(written->Get(0)->object_bytes(), 1u << 20);
  EXPECT_EQ(written->Get(0)->tensors()->size(), 0u);
  const auto* second = written->Get(2);
  EXPECT_EQ(second->name()->str(), "layers.1");
  EXPECT_EQ(second->object_bytes(), 2u * 2 * 64 * 8 * 2 + 2 * 64 * 16);
  ASSERT_EQ(second->tensors()->size(), 2u);
  EXPECT_EQ(second->tensors()->Get(0)->first_layer(), 2u);
  EXPECT_EQ(second->tensors()->Get(1)->offset(), 2u * 2 * 64 * 8 * 2);
  EXPECT_EQ(second->tensors()->Get(1)->bytes(), 2u * 64 * 16);
  EXPECT_EQ(second->tensors()->Get(1)->first_layer(), 6u);
  EXPECT_EQ(second->tensors()->Get(1)->layers(), 2u);
}

TEST(OpenPools, AreInTheAnswerOfTheirSpace) {
  auto spec = terrace::test::small_space();
  opened_space space{space_id{9}, spec, spec.fingerprint()};
  flatbuffers::FlatBufferBuilder body;
  body.Finish(write_open_space_answer(body, space));
  const auto& answer = *flatbuffers::GetRoot<wire::OpenSpaceAnswer>(body.GetBufferPointer());
  EXPECT_EQ(answer.space(), 9u);
  EXPECT_EQ(answer.fingerprint()->size(), space.fingerprint.bytes.size());
  EXPECT_EQ(answer.pools()->size(), spec.pools.size());
}
