#include "connection/status_tables.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

group_status two_tiers() {
  group_status made;
  made.name = "default";
  made.path = "/run/terrace.sock";
  made.tiers.resize(2);
  made.tiers[0].kind = tier_kind::host;
  made.tiers[1].kind = tier_kind::disk;
  return made;
}

} // namespace

TEST(GroupStatus, ATierWhoseActorHasEndedIsDegraded) {
  auto status = two_tiers();
  status.tier_ended(1);
  EXPECT_EQ(status.tiers[0].state, "ready");
  EXPECT_EQ(status.tiers[1].state, "degraded");
  EXPECT_EQ(status.tiers[1].reason, "its actor has ended");
}

TEST(GroupStatus, AddsTheServiceOfATier) {
  auto status = two_tiers();
  status.tier_service(tier_kind::disk, "", "a path is left out");
  EXPECT_EQ(status.tiers[1].state, "ready");
  EXPECT_EQ(status.tiers[1].notice, "a path is left out");
  status.tier_service(tier_kind::disk, "its device fails", "");
  EXPECT_EQ(status.tiers[1].state, "degraded");
  EXPECT_EQ(status.tiers[1].reason, "its device fails");
  EXPECT_EQ(status.tiers[1].notice, "");
  status.tier_service(tier_kind::remote, "unknown", "");
  EXPECT_EQ(status.tiers[0].state, "ready");
}

TEST(GroupStatus, AddsTheNamesOfPolicies) {
  auto status = two_tiers();
  status.policies.tiers = {{tier_kind::disk, "s3fifo", 0}, {tier_kind::host, "lru", 0}};
  status.name_policies();
  EXPECT_EQ(status.tiers[0].policy, "lru");
  EXPECT_EQ(status.tiers[1].policy, "s3fifo");
}

TEST(GroupStatus, AddsWhatTheArenaKnows) {
  auto memory = segmented_arena::create({.name = "test", .bytes = 2 << 20, .segment_bytes = 1 << 20}).value();
  memory->retire(1);
  auto status = two_tiers();
  status.add_memory(*memory);
  EXPECT_EQ(status.tiers[0].leaving_bytes, 1u << 20);
  EXPECT_EQ(status.tiers[1].leaving_bytes, 0u);
}

TEST(GroupStatus, DevicesDoNotReadADiskThatNoneMayRead) {
  auto board = std::make_shared<metrics::device_board>();
  auto device = std::make_shared<metrics::device_probe>("host");
  board->add(device);
  client_environment environment;
  environment.now = [] { return client_environment::clock::time_point(); };
  environment.devices_shown = board;
  auto status = two_tiers();
  auto shown = [&](const std::string& reads) {
    device->reads_disks(reads);
    flatbuffers::FlatBufferBuilder body;
    body.Finish(write_status_answer(body, status, environment, {}));
    const auto& answer = *flatbuffers::GetRoot<wire::StatusAnswer>(body.GetBufferPointer());
    return answer.devices()->Get(0)->disk_reads()->str();
  };
  EXPECT_EQ(shown("not tried"), "not tried");
  status.disk_refusal = "/disk: no descriptors";
  EXPECT_EQ(shown("not tried"), "not all: /disk: no descriptors");
  EXPECT_EQ(shown("yes"), "not all: /disk: no descriptors") << "it reads those of other groups";
  EXPECT_EQ(shown("no: no cuFile"), "no: no cuFile");
  EXPECT_EQ(shown("off"), "off");
}

TEST(GroupStatus, TheAnswerShowsOneGroupAndItsClients) {
  auto status = two_tiers();
  status.group.spaces = 3;
  status.group.leases = 2;
  client_environment environment;
  environment.boot = boot_id{{7}};
  environment.workers = 4;
  environment.ring_features = {"fixed_buffers"};
  environment.now = [] { return client_environment::clock::time_point(std::chrono::seconds(5)); };
  environment.regions = region_budget::make({"the group", 1000});
  environment.client_probe = std::make_shared<metrics::client_probe>();
  environment.client_probe->spared(std::chrono::seconds(3), std::chrono::milliseconds(40));
  auto client = std::make_shared<client_state>();
  client->id = connection_id{6};
  flatbuffers::FlatBufferBuilder body;
  body.Finish(write_status_answer(body, status, environment, {client}));
  const auto& answer = *flatbuffers::GetRoot<wire::StatusAnswer>(body.GetBufferPointer());
  EXPECT_EQ(answer.uptime_ms(), 5000u);
  EXPECT_EQ(answer.workers(), 4u);
  EXPECT_EQ(answer.ring()->Get(0)->str(), "fixed_buffers");
  ASSERT_EQ(answer.groups()->size(), 1u);
  const auto& group = *answer.groups()->Get(0);
  EXPECT_EQ(group.name()->str(), "default");
  EXPECT_EQ(group.spaces(), 3u);
  EXPECT_EQ(group.leases(), 2u);
  EXPECT_EQ(group.tiers()->size(), 2u);
  EXPECT_EQ(group.region_bytes_max(), 1000u);
  EXPECT_EQ(group.computing_saved_ms(), 3000u);
  EXPECT_EQ(group.saved_load_ms(), 40u);
  ASSERT_EQ(answer.clients()->size(), 1u);
  EXPECT_EQ(answer.clients()->Get(0)->connection(), 6u);
}
