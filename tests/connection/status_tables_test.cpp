#include "connection/status_tables.hpp"
#include "policy/eviction_policy.hpp"

#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {
template <class Table>
const Table& finished(flatbuffers::FlatBufferBuilder& body, flatbuffers::Offset<Table> table) {
  body.Finish(table);
  return *flatbuffers::GetRoot<Table>(body.GetBufferPointer());
}
} // namespace

TEST(StatusTables, ATierHasItsReport) {
  tier_report report;
  report.kind = tier_kind::disk;
  report.state = "degraded";
  report.reason = "gone";
  report.usage.capacity_bytes = 100;
  report.objects = 3;
  report.held_objects = 2;
  flatbuffers::FlatBufferBuilder body;
  const auto& tier = finished(body, write_status(body, report, 70));
  EXPECT_EQ(tier.hit_tokens(), 70u);
  EXPECT_EQ(tier.tier()->str(), "disk");
  EXPECT_EQ(tier.state()->str(), "degraded");
  EXPECT_EQ(tier.reason()->str(), "gone");
  EXPECT_EQ(tier.capacity_bytes(), 100u);
  EXPECT_EQ(tier.objects(), 3u);
  EXPECT_EQ(tier.leased_objects(), 2u);
  EXPECT_EQ(tier.notice(), nullptr);
}

TEST(StatusTables, ATierHasANoticeIfThereIsOne) {
  tier_report report;
  report.notice = "no huge pages";
  flatbuffers::FlatBufferBuilder body;
  EXPECT_EQ(finished(body, write_status(body, report, 0)).notice()->str(), "no huge pages");
}

TEST(StatusTables, AClientHasItsState) {
  client_state client;
  client.id = connection_id{7};
  client.group = "default";
  client.pid = 12;
  client.leases = 4;
  client.since = std::chrono::steady_clock::time_point(std::chrono::seconds(100));
  client.answered = 3;
  client.latency_ns = 5'999;
  client.quarantined_bytes = 4096;
  client.set_name("vllm");
  flatbuffers::FlatBufferBuilder body;
  const auto& written =
      finished(body, write_status(body, client, client.since + std::chrono::milliseconds(70)));
  EXPECT_EQ(written.connection(), 7u);
  EXPECT_EQ(written.name()->str(), "vllm");
  EXPECT_EQ(written.state()->str(), "handshake");
  EXPECT_EQ(written.pid(), 12);
  EXPECT_EQ(written.leases(), 4u);
  EXPECT_EQ(written.age_ms(), 70u);
  EXPECT_EQ(written.leased_bytes(), 0u);
  EXPECT_EQ(written.quarantined_bytes(), 4096u);
  EXPECT_EQ(written.answered(), 3u);
  EXPECT_EQ(written.latency_us(), 5u);
}

TEST(StatusTables, ASpaceHasItsPools) {
  auto spec = terrace::test::small_space();
  spec.salt = "secret";
  group_status status;
  status.tiers.resize(2);
  status.tiers[1].kind = tier_kind::disk;
  status.tiers[1].spaces[3] = {2, 8192};
  flatbuffers::FlatBufferBuilder body;
  const auto& written = finished(body, write_status(body, status, space_id{3}, spec.fingerprint(), &spec));
  EXPECT_EQ(written.space(), 3u);
  EXPECT_EQ(written.dtype()->str(), spec.dtype);
  EXPECT_TRUE(written.salted());
  ASSERT_EQ(written.tiers()->size(), 1u);
  EXPECT_EQ(written.tiers()->Get(0)->tier()->str(), "disk");
  EXPECT_EQ(written.tiers()->Get(0)->bytes(), 8192u);
  EXPECT_EQ(written.model()->str(), spec.model);
  EXPECT_EQ(written.pools()->size(), spec.pools.size());
}

TEST(StatusTables, ASpaceThatNobodyHasOpenedHasNoFields) {
  group_status status;
  flatbuffers::FlatBufferBuilder body;
  const auto& written = finished(body, write_status(body, status, space_id{3}, digest{}, nullptr));
  EXPECT_EQ(written.chunk_tokens(), 0u);
  EXPECT_EQ(written.model()->str(), "");
  EXPECT_EQ(written.tiers()->size(), 0u);
}

TEST(StatusTables, PoliciesHaveTheirTiersAndShadows) {
  policies_report policies;
  policies.tiers = {{tier_kind::host, "kmg", 5}, {tier_kind::disk, "lru", 6}};
  policies.tracked = 11;
  policies.known = eviction_policy_names();
  shadow_report shadows;
  shadows.lines.resize(1);
  shadows.lines[0].policy = "arc";
  shadows.lines[0].counts.hits = 9;
  flatbuffers::FlatBufferBuilder body;
  const auto& written = finished(body, write_policies(body, "default", policies, shadows, 2));
  EXPECT_EQ(written.group()->str(), "default");
  ASSERT_EQ(written.tiers()->size(), 2u);
  EXPECT_EQ(written.tiers()->Get(1)->policy()->str(), "lru");
  ASSERT_EQ(written.shadows()->size(), 1u);
  EXPECT_EQ(written.shadows()->Get(0)->hits(), 9u);
  EXPECT_GT(written.known()->size(), 2u);
}
