// Bounds of every option, and what must hold between options.
#include "connection/client_environment.hpp"
#include "daemon/settings.hpp"
#include "group/session_table.hpp"

#include "settings_support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> faulty_options(const settings& s) {
  std::vector<std::string> names;
  for (const auto& problem : s.validate())
    names.push_back(problem.option);
  return names;
}

/// Valid settings with sockets of these groups.
settings with_groups(std::initializer_list<const char*> groups) {
  auto s = default_settings(test_environment());
  s.listen.clear();
  for (auto group : groups) {
    auto& socket = s.listen.emplace_back();
    socket.path = "/run/" + std::to_string(s.listen.size()) + ".sock";
    socket.group = group;
  }
  return s;
}

gpu_options& with_gpu_tier(settings& s) {
  s.gpu.tier_bytes = gibibyte;
  s.gpu.tier_device = "host";
  return s.gpu;
}

TEST(Settings, DefaultsAreValid) {
  EXPECT_THAT(faulty_options(default_settings(test_environment())), IsEmpty());
}

TEST(Settings, AGpuTierNeedsADevice) {
  auto s = default_settings(test_environment());
  with_gpu_tier(s);
  EXPECT_THAT(faulty_options(s), IsEmpty());
  s.gpu.tier_device = "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00";
  EXPECT_THAT(faulty_options(s), IsEmpty());
}

TEST(Settings, EveryBoundIsEnforced) {
  struct {
    const char* option;
    void (*spoil)(settings&);
  } cases[] = {
      {"daemon.workers", [](settings& s) { s.daemon.workers = 257; }},
      {"daemon.log_level", [](settings& s) { s.daemon.log_level = "verbose"; }},
      {"daemon.shutdown_grace", [](settings& s) { s.daemon.shutdown_grace = std::chrono::hours(1); }},
      {"listen", [](settings& s) { s.listen.clear(); }},
      {"listen[0].path", [](settings& s) { s.listen[0].path = "relative.sock"; }},
      {"listen[0].path", [](settings& s) { s.listen[0].path = "/" + std::string(107, 'x'); }},
      {"listen[0].path", [](settings& s) { s.listen[0].path = std::string("/a\0b", 4); }},
      {"listen[0].group", [](settings& s) { s.listen[0].group = "../etc"; }},
      {"listen[0].group", [](settings& s) { s.listen[0].group = ""; }},
      {"listen[0].mode", [](settings& s) { s.listen[0].mode = 01777; }},
      {"listen[0].uids", [](settings& s) { s.listen[0].uids.resize(1025); }},
      {"listen[0].gids", [](settings& s) { s.listen[0].gids.resize(1025); }},
      {"listen[0].host_bytes", [](settings& s) { s.listen[0].host_bytes = 4097; }},
      {"listen[0].disk_bytes", [](settings& s) { s.listen[0].disk_bytes = mebibyte + 1; }},
      {"connection.staging_bytes", [](settings& s) { s.connection.staging_bytes = 4096; }},
      {"connection.connections_max", [](settings& s) { s.connection.connections_max = 0; }},
      {"connection.group_bytes", [](settings& s) { s.connection.group_bytes = mebibyte; }},
      {"connection.request_deadline",
       [](settings& s) { s.connection.request_deadline = std::chrono::hours(2); }},
      {"connection.request_deadline",
       [](settings& s) { s.connection.request_deadline = std::chrono::milliseconds(0); }},
      {"host.bytes", [](settings& s) { s.host.bytes = 0; }},
      {"host.bytes", [](settings& s) { s.host.bytes = gibibyte + 1; }},
      {"host.segment_bytes", [](settings& s) { s.host.segment_bytes = 2 * gibibyte; }},
      {"host.allocator", [](settings& s) { s.host.allocator = "buddy"; }},
      {"host.allocator", [](settings& s) { s.host.allocator = "paged"; }},
      {"host.policy", [](settings& s) { s.host.policy = "random"; }},
      {"host.low_watermark_percent", [](settings& s) { s.host.low_watermark_percent = 51; }},
      {"host.numa_node", [](settings& s) { s.host.numa_node = "second"; }},
      {"host.numa_node", [](settings& s) { s.host.numa_node = "1x"; }},
      {"disk.path", [](settings& s) { s.disk.path = {""}; }},
      {"disk.bytes", [](settings& s) { s.disk.bytes = UINT64_MAX; }},
      {"disk.bytes", [](settings& s) { s.disk.bytes = 4096; }},
      {"disk.allocator", [](settings& s) { s.disk.allocator = ""; }},
      {"disk.policy", [](settings& s) { s.disk.policy = "lfo"; }},
      {"disk.depth", [](settings& s) { s.disk.depth = 0; }},
      {"disk.on_mismatch", [](settings& s) { s.disk.on_mismatch = "ask"; }},
      {"disk.admission", [](settings& s) { s.disk.admission = "sometimes"; }},
      {"disk.write_bytes_per_day", [](settings& s) { s.disk.write_bytes_per_day = 1; }},
      {"disk.stall_after", [](settings& s) { s.disk.stall_after = std::chrono::milliseconds(99); }},
      {"shadow.policies",
       [](settings& s) {
         s.shadow.policies = {"lru", "clock"};
       }},
      {"shadow.policies",
       [](settings& s) {
         s.shadow.policies = {"lru", "lru"};
       }},
      {"shadow.capacity_percents", [](settings& s) { s.shadow.capacity_percents = {0}; }},
      {"shadow.capacity_percents",
       [](settings& s) {
         s.shadow.capacity_percents = {50, 50};
       }},
      {"shadow.capacity_percents", [](settings& s) { s.shadow.capacity_percents = {}; }},
      {"copier.threads", [](settings& s) { s.copier.threads = 65; }},
      {"gpu.deadline", [](settings& s) { s.gpu.deadline = std::chrono::milliseconds(99); }},
      {"gpu.map_arenas", [](settings& s) { s.gpu.map_arenas = "some"; }},
      {"gpu.direct_bytes", [](settings& s) { s.gpu.direct_bytes = 4096; }},
      {"gpu.direct_bytes", [](settings& s) { s.gpu.direct_bytes = mebibyte + 4096; }},
      {"gpu.tier_bytes", [](settings& s) { s.gpu.tier_bytes = 4097; }},
      {"gpu.tier_device", [](settings& s) { s.gpu.tier_bytes = gibibyte; }},
      {"gpu.tier_device", [](settings& s) { with_gpu_tier(s).tier_device = "cuda:0"; }},
      {"gpu.tier_demotion", [](settings& s) { with_gpu_tier(s).tier_demotion = "write_through"; }},
      {"gpu.tier_bytes", [](settings& s) { with_gpu_tier(s).enabled = false; }},
      {"lease.host_percent", [](settings& s) { s.lease.host_percent = 101; }},
      {"lease.host_percent", [](settings& s) { s.lease.host_percent = 29; }},
      {"lease.connection_percent", [](settings& s) { s.lease.connection_percent = 0; }},
      {"lease.pin_percent", [](settings& s) { s.lease.pin_percent = 101; }},
      {"metrics.address", [](settings& s) { s.metrics.address = "0.0.0.0:9464"; }}, // without a token
      {"metrics.address", [](settings& s) { s.metrics.address = "example.org:9464"; }},
  };
  for (const auto& c : cases) {
    auto s = default_settings(test_environment());
    c.spoil(s);
    EXPECT_THAT(faulty_options(s), Contains(c.option));
  }
}

TEST(Settings, BoundsThatFollowFromOthersAreByDefaultThoseOfTheComponents) {
  connection_options with;
  EXPECT_EQ(with.credit_requests(), connection_limits{}.credit_requests);
  EXPECT_EQ(with.credit_bytes(), 32 * mebibyte);
  EXPECT_EQ(with.spaces_max(), connection_limits{}.spaces_max);
  EXPECT_EQ(with.sessions_max(), session_bounds{}.owner_sessions_max);
  EXPECT_EQ(with.handshake_deadline(), connection_limits{}.handshake_deadline);
  EXPECT_EQ(with.device_staging_bytes(), 64 * mebibyte);
  EXPECT_EQ(with.reservations_max(), 4096u);
  EXPECT_EQ(with.leases_max(), 65536u);
  EXPECT_EQ(with.lease_objects_max(), 4'194'304u);
  EXPECT_EQ(with.request_deadline_max(), std::chrono::minutes(10));
  EXPECT_EQ(with.session_bytes(), 64 * mebibyte);
  EXPECT_EQ(with.session_bytes_group(), 256 * mebibyte);
  EXPECT_EQ(with.sessions_group_max(), 131'072u);
  EXPECT_EQ(with.prompts_max(), 256u);
  EXPECT_EQ(with.prompt_bytes(), 256 * mebibyte);
  EXPECT_EQ(with.memo_bytes(), 63 * mebibyte);
  EXPECT_EQ(with.lease_warn_after(), std::chrono::seconds(60));
}

TEST(Settings, BoundsThatFollowFromOthersAreOfUseAtTheLeastAndAtTheMost) {
  connection_options with;
  with.group_bytes = 16 * mebibyte;
  EXPECT_EQ(with.credit_requests(), 4U) << "a client may pipeline";
  EXPECT_EQ(with.credit_bytes(), 16 * mebibyte) << "a frame of the maximum size fits";
  EXPECT_EQ(with.reservations_max(), 64u);
  EXPECT_EQ(with.leases_max(), 1024u);
  EXPECT_EQ(with.lease_objects_max(), 65536u);
  EXPECT_EQ(with.prompts_max(), 4u);
  EXPECT_EQ(with.memo_bytes(), 0u) << "it remembers no tokens";
  with.group_spaces_max = 1;
  EXPECT_EQ(with.spaces_max(), 64U);
  with.staging_bytes = mebibyte;
  EXPECT_EQ(with.device_staging_bytes(), mebibyte);
  with.staging_bytes = 7 * mebibyte;
  EXPECT_EQ(with.device_staging_bytes(), mebibyte) << "whole mebibytes";
  with.staging_bytes = tebibyte;
  EXPECT_EQ(with.device_staging_bytes(), 16 * gibibyte);
  with.group_bytes = tebibyte;
  EXPECT_EQ(with.credit_requests(), 65536U);
  EXPECT_EQ(with.lease_objects_max(), UINT32_MAX);
}

TEST(Settings, WithoutADiskLeasesMayHoldAnyShareOfHostMemory) {
  auto s = default_settings(test_environment());
  s.disk.bytes = 0;
  s.lease.host_percent = 1;
  EXPECT_THAT(faulty_options(s), IsEmpty());
  s.disk.bytes = gibibyte;
  s.lease.host_percent = 30;
  EXPECT_THAT(faulty_options(s), IsEmpty());
}

TEST(Settings, APagedAllocatorTakesASlotSizeOfAtMostASegment) {
  auto s = default_settings(test_environment());
  s.host.allocator = s.disk.allocator = "paged:4MiB";
  EXPECT_THAT(faulty_options(s), IsEmpty());
  s.host.segment_bytes = 2 * mebibyte;
  EXPECT_THAT(faulty_options(s), ElementsAre("host.allocator"));
}

TEST(Settings, HugePagesWantMultiplesOfThem) {
  auto s = default_settings(test_environment());
  s.host.huge_pages = true;
  EXPECT_THAT(faulty_options(s), IsEmpty());
  s.host.bytes += 4096;
  s.listen[0].host_bytes = 3 * mebibyte;
  EXPECT_THAT(faulty_options(s), ElementsAre("listen[0].host_bytes", "host.bytes"));
}

TEST(Settings, SocketsOfAGroupMustDescribeItAlike) {
  auto s = with_groups({"a", "b", "a"});
  s.listen[2].isolated = true;
  s.listen[0].host_bytes = 8 * mebibyte;
  s.listen[2].host_bytes = 16 * mebibyte;
  EXPECT_THAT(faulty_options(s), ElementsAre("listen[2].isolated", "listen[2].host_bytes"));
}

TEST(Settings, SharesMustFitIntoTheirTier) {
  auto s = with_groups({"a", "b"});
  s.listen[0].host_bytes = s.host.bytes;
  EXPECT_THAT(faulty_options(s), ElementsAre("host.bytes")) << "nothing is left for b";
  s.listen[1].host_bytes = s.host.bytes;
  EXPECT_THAT(faulty_options(s), ElementsAre("host.bytes"));
  s.listen[0].host_bytes = s.listen[1].host_bytes = s.host.bytes / 2;
  EXPECT_THAT(faulty_options(s), IsEmpty());
}

TEST(Settings, SharesOfADisabledDiskDoNotMatter) {
  auto s = with_groups({"a", "b"});
  s.disk.bytes = 0;
  s.listen[0].disk_bytes = gibibyte;
  EXPECT_THAT(faulty_options(s), IsEmpty());
  EXPECT_EQ(s.groups()[0].disk_bytes, 0u);
}

TEST(Groups, ShareWhatIsLeftInEqualParts) {
  auto s = with_groups({"a", "b", "c", "a"});
  s.host.bytes = 10 * mebibyte;
  s.listen[3].host_bytes = 4 * mebibyte;
  auto groups = s.groups();
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].host_bytes, 4 * mebibyte);
  EXPECT_EQ(groups[1].host_bytes, 3 * mebibyte);
  EXPECT_EQ(groups[2].host_bytes, 3 * mebibyte);
  EXPECT_THAT(groups[0].sockets, ElementsAre(0, 3));
}

TEST(Groups, NeverGetMoreThanTheTierHasHoweverItIsDivided) {
  auto s = with_groups({"a", "b", "c"});
  s.host.huge_pages = true;
  s.host.bytes = 64 * mebibyte;
  uint64_t sum = 0;
  for (const auto& group : s.groups()) {
    EXPECT_EQ(group.host_bytes % (2 * mebibyte), 0u);
    sum += group.host_bytes;
  }
  EXPECT_LE(sum, s.host.bytes);
  EXPECT_GT(sum, s.host.bytes - 3 * 2 * mebibyte);
}

TEST(Groups, HaveFilesOfTheirOwn) {
  auto s = with_groups({"default", "tenant"});
  s.disk.path = {"/var/lib/terrace"};
  EXPECT_EQ(s.groups()[0].disk_files, (std::vector<std::string>{"/var/lib/terrace/terrace.extents"}));
  EXPECT_EQ(s.groups()[1].disk_files, (std::vector<std::string>{"/var/lib/terrace/terrace-tenant.extents"}));
}

TEST(Groups, PathsDivideTheDiskOfEachGroup) {
  auto s = with_groups({"default"});
  s.disk.path = {"/mnt/a", "/mnt/b", "/mnt/c"};
  s.disk.bytes = 10 * mebibyte;
  EXPECT_THAT(faulty_options(s), IsEmpty());
  auto group = s.groups()[0];
  EXPECT_EQ(group.disk_files, (std::vector<std::string>{"/mnt/a/terrace.extents", "/mnt/b/terrace.extents",
                                                        "/mnt/c/terrace.extents"}));
  EXPECT_EQ(group.disk_bytes % (3 * 4096), 0U);
  EXPECT_GT(group.disk_bytes + 3 * 4096, s.disk.bytes);
}

TEST(Settings, EachPathIsAnAbsoluteDirectoryOfItsOwnWithRoomForAStore) {
  auto s = with_groups({"default"});
  s.disk.path = {"/mnt/a", "mnt/b"};
  EXPECT_THAT(faulty_options(s), Contains("disk.path"));
  s.disk.path = {"/mnt/a", "/mnt/b", "/mnt/a"};
  EXPECT_THAT(faulty_options(s), Contains("disk.path"));
  s.disk.path.clear();
  for (int i = 0; i < 65; ++i)
    s.disk.path.push_back("/mnt/" + std::to_string(i));
  EXPECT_THAT(faulty_options(s), Contains("disk.path"));
  s.disk.path = {"/mnt/a", "/mnt/b"};
  s.disk.bytes = mebibyte;
  EXPECT_THAT(faulty_options(s), Contains("disk.bytes"));
  s.disk.bytes = gibibyte;
  s.listen[0].disk_bytes = mebibyte;
  EXPECT_THAT(faulty_options(s), Contains("listen[0].disk_bytes"));
}

TEST(Listen, AdmitsItsOwnUserAndRootWhenNothingIsListed) {
  listen_options socket;
  EXPECT_TRUE(socket.admits(1000, 1000, 1000));
  EXPECT_TRUE(socket.admits(0, 0, 1000));
  EXPECT_FALSE(socket.admits(1001, 1000, 1000));
}

TEST(Listen, AdmitsWhoIsListedAndNobodyElse) {
  listen_options socket;
  socket.uids = {7};
  socket.gids = {8};
  EXPECT_TRUE(socket.admits(7, 1, 1000));
  EXPECT_TRUE(socket.admits(1, 8, 1000));
  EXPECT_FALSE(socket.admits(1000, 1, 1000)) << "a list replaces the default";
}

} // namespace
} // namespace terrace
