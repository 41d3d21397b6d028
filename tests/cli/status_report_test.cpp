#include "cli/status_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace terrace::cli {
namespace status_report_test {

using testing::ContainsRegex;
using testing::HasSubstr;

client::daemon_status example() {
  client::daemon_status s;
  s.version = "0.1.0";
  s.boot.bytes.fill(0xab);
  s.uptime = std::chrono::seconds(75);
  s.workers = 2;
  s.ring = {"single_issuer", "defer_taskrun"};
  client::group_status& group = s.groups.emplace_back();
  group.name = "default";
  group.path = "/run/terrace/terrace.sock";
  client::tier_status& host = group.tiers.emplace_back();
  host.tier = "host";
  host.state = "ready";
  host.capacity_bytes = 4ULL << 30;
  host.used_bytes = 1ULL << 30;
  host.objects = 12'031;
  host.hits = 3;
  host.hit_tokens = 500;
  group.asked_tokens = 2'000;
  host.misses = 1;
  host.policy = "lru";
  client::tier_status& disk = group.tiers.emplace_back();
  disk.tier = "disk";
  disk.state = "degraded";
  disk.reason = "No space left on device";
  client::client_status& client = s.clients.emplace_back();
  client.connection = connection_id{7};
  client.name = "vllm";
  client.pid = 4242;
  client.state = "open";
  return s;
}

TEST(StatusReport, ShowsTiersWithUnits) {
  std::string text = format_status(example());
  EXPECT_THAT(text, HasSubstr("abababababababababababababababab"));
  EXPECT_THAT(text, ContainsRegex("host +ready +4.00 GiB +1.00 GiB +25.0 %"));
  EXPECT_THAT(text, ContainsRegex("host +3 +1 +75.0 % +500 +25.0 %"));
  EXPECT_THAT(text, HasSubstr("disk is degraded: No space left on device"));
  EXPECT_THAT(text, ContainsRegex("7 +vllm +4242"));
}

TEST(StatusReport, TellsWhatLoadsHaveSavedOfClientsThatDeclareTheirSpeed) {
  auto status = example();
  EXPECT_THAT(format_status(status), testing::Not(HasSubstr("computing saved")));
  status.groups[0].computing_saved = std::chrono::seconds(200);
  status.groups[0].saved_load = std::chrono::milliseconds(1'500);
  EXPECT_THAT(format_status(status),
              HasSubstr("  computing saved: 3 min 20 s, for loads that took 1.50 s\n"));
  auto group = to_json(status)["groups"][0];
  EXPECT_EQ(group["computing_saved_ms"], 200'000);
  EXPECT_EQ(group["saved_load_ms"], 1'500);
}

TEST(StatusReport, TellsWhyADeviceReadsNoDisk) {
  auto status = example();
  for (const char* reads : {"off", "not tried", "opening", "yes"}) {
    status.devices = {client::device_status{.device = "GPU-1", .disk_reads = reads}};
    EXPECT_THAT(format_status(status), testing::Not(HasSubstr("reads disks itself"))) << reads;
  }
  for (const char* reads : {"no: no cuFile", "not all: /disk: no descriptors"}) {
    status.devices.front().disk_reads = reads;
    EXPECT_THAT(format_status(status), HasSubstr(std::string("GPU-1 reads disks itself: ") + reads));
  }
}

client::daemon_status with_a_space() {
  auto status = example();
  client::space_status& space = status.groups[0].open_spaces.emplace_back();
  space.space = 2;
  space.model = "llama";
  space.dtype = "bf16";
  space.layout = "paged";
  space.tenant = "gold";
  space.chunk_tokens = 256;
  space.tiers = {{"host", 2, 6 << 20}};
  space.fingerprint.bytes.fill(0xcd);
  space.pools.push_back({"kv.1", 3 << 20, {{0, 2 << 20, 16, 8}, {2 << 20, 1 << 20, 40, 1}}});
  space.pools.push_back({"state", 4096, {}});
  return status;
}

TEST(StatusReport, ShowsThePoolsOfSpaces) {
  std::string text = format_status(with_a_space());
  EXPECT_THAT(text, ContainsRegex("2 +llama +- +bf16 +paged +gold +6.00 MiB +-"));
  EXPECT_THAT(text, ContainsRegex("2 +cdcdcdcd +kv.1 +3.00 MiB +2 +16 to 23, 40 to 40"));
  EXPECT_THAT(text, ContainsRegex("2 +cdcdcdcd +state +4.00 KiB +- +-"));
  EXPECT_THAT(format_status(example()), testing::Not(HasSubstr("fingerprint")));
}

TEST(StatusReport, ShowsSpacesThatNobodyHasOpenAndThoseWhoseFieldsAreUnknown) {
  auto status = with_a_space();
  status.groups[0].idle_spaces = std::move(status.groups[0].open_spaces);
  status.groups[0].open_spaces.clear();
  client::space_status& unknown = status.groups[0].idle_spaces.emplace_back();
  unknown.space = 9;
  unknown.tiers = {{"disk", 1, 4096}};
  std::string text = format_status(status);
  EXPECT_THAT(text, ContainsRegex("2 +llama"));
  EXPECT_THAT(text, ContainsRegex("9 +not opened yet +- +- +- +- +- +4.00 KiB"));
  EXPECT_EQ(to_json(status)["groups"][0]["idle_spaces"][1]["tiers"][0]["bytes"], 4096);
}

TEST(StatusReport, FitsInto80Columns) {
  auto status = with_a_space();
  status.groups[0].open_spaces[0].model = std::string(300, 'm');
  status.groups[0].open_spaces[0].revision = std::string(40, 'r');
  status.clients[0].name = std::string(100, 'c');
  std::istringstream lines(format_status(status));
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 80u) << line;
}

TEST(StatusReport, JsonHasThePoolsOfSpaces) {
  json space = to_json(with_a_space())["groups"][0]["open_spaces"][0];
  EXPECT_EQ(space["model"], "llama");
  EXPECT_EQ(space["pools"][0]["tensors"][1]["offset"], 2 << 20);
  EXPECT_EQ(space["pools"][0]["tensors"][1]["first_layer"], 40);
  EXPECT_EQ(space["pools"][1]["object_bytes"], 4096);
}

TEST(StatusReport, JsonHasEveryField) {
  json j = to_json(example());
  EXPECT_EQ(j["uptime_ms"], 75'000);
  EXPECT_EQ(j["groups"][0]["tiers"][0]["objects"], 12'031);
  EXPECT_EQ(j["groups"][0]["tiers"][1]["reason"], "No space left on device");
  EXPECT_EQ(j["clients"][0]["connection"], 7);
}

} // namespace status_report_test
} // namespace terrace::cli
