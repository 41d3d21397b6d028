#include "actors/connection/prefixes.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::actors;

TEST(RunsOf, AreCheckedAgainstTheObjectsAndTheRegion) {
  auto batch = std::make_shared<object_batch>();
  batch->payload_bytes = {1000, 500, 200};
  auto with = [&](std::vector<wire::Run> runs, uint64_t region_bytes) {
    flatbuffers::FlatBufferBuilder body;
    auto listed = body.CreateVectorOfStructs(runs);
    body.Finish(listed);
    const auto* read = flatbuffers::GetRoot<protocol::run_vector>(body.GetBufferPointer());
    return runs_of(*read, nullptr, *batch, region_bytes);
  };
  auto made = with({{0, 1000, 0, 1}, {4000, 50, 100, 10}, {2000, 200, 0, 1}}, 5000);
  ASSERT_TRUE(made) << made.error().text;
  EXPECT_EQ((*made)->objects(), 3u);
  EXPECT_EQ((*made)->pieces(1).size(), 10u);
  EXPECT_EQ((*made)->pieces(2)[0].region_offset, 2000u);
  auto outside = with({{0, 1000, 0, 1}, {4000, 50, 100, 10}, {4900, 200, 0, 1}}, 5000);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, errc::bad_request);
  EXPECT_FALSE(with({{0, 1000, 0, 1}}, 5000));
}
