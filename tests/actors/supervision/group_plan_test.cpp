#include "actors/supervision/group_plan.hpp"

#include "actors/supervision/group_probes.hpp"

#include <gtest/gtest.h>

using namespace terrace;

TEST(GroupPlan, ADiskIsDividedAmongItsFiles) {
  group_plan plan;
  plan.name = "prod";
  plan.disk.emplace();
  plan.disk->bytes = 3 << 20;
  plan.disk_files = {"/a", "/b", "/c"};
  plan.on_mismatch = mismatch_rule::refuse;
  plan.disk_object_bytes = 12'288;
  boot_id boot;
  boot.bytes[0] = decltype(boot.bytes)::value_type(7);
  auto files = files_of(plan, boot);
  EXPECT_EQ(files.capacity_bytes, 1u << 20);
  EXPECT_EQ(files.paths, (std::vector<std::string>{"/a", "/b", "/c"}));
  EXPECT_EQ(files.boot, boot);
  EXPECT_EQ(files.owner.group, "prod");
  EXPECT_EQ(files.on_mismatch, mismatch_rule::refuse);
  EXPECT_EQ(files.object_bytes, 12'288u);
}

TEST(GroupPlan, APathHasProbesWithoutADiskToo) {
  group_probes probes;
  ASSERT_EQ(probes.paths.size(), 1u);
  EXPECT_TRUE(probes.paths.front().disk);
  EXPECT_TRUE(probes.paths.front().journal);
}

TEST(GroupPlan, NamesItsHostMemory) {
  group_plan plan;
  plan.name = "tenant";
  plan.host.bytes = 3 << 20;
  plan.segment_bytes = 1 << 20;
  auto arena = arena_of(plan);
  EXPECT_EQ(arena.name, "terrace-tenant");
  EXPECT_EQ(arena.bytes, 3u << 20);
  EXPECT_EQ(arena.segment_bytes, 1u << 20);
}
