#include "cli/status_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

using namespace std::chrono_literals;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

client::client_status client_of(uint64_t id, const std::string& name, uint64_t answered,
                                std::chrono::microseconds latency) {
  client::client_status one;
  one.connection = connection_id{id};
  one.name = name;
  one.state = "serving";
  one.answered = answered;
  one.latency = latency;
  return one;
}

client::daemon_status status_of(std::vector<client::client_status> clients, uint64_t hits, uint64_t misses) {
  client::daemon_status s;
  s.version = "0.1.0";
  s.uptime = 75s;
  client::group_status& group = s.groups.emplace_back();
  group.name = "default";
  group.leases = 3;
  client::tier_status& host = group.tiers.emplace_back();
  host.tier = "host";
  host.state = "ready";
  host.capacity_bytes = 4ULL << 30;
  host.used_bytes = 1ULL << 30;
  host.hits = hits;
  host.misses = misses;
  host.bytes_read = hits * 1'000'000;
  s.clients = std::move(clients);
  return s;
}

TEST(TopReport, ShowsWhatChangedPerSecond) {
  auto before = status_of({client_of(1, "fast", 100, 1'000us)}, 1'000, 500);
  auto now = status_of({client_of(1, "fast", 300, 21'000us)}, 4'000, 1'500);
  std::string text = format_top(before, now, 2s, 10);
  EXPECT_THAT(text, HasSubstr("1 client, "));
  EXPECT_THAT(text, HasSubstr("100/s, mean latency 100 us"));
  EXPECT_THAT(text, ContainsRegex("host +ready +1.00 GiB +25.0 % +0 +0 +1,500/s +75.0 % +0/s +1.50 GB/s"));
}

TEST(TopReport, TheClientsWhoseRequestsTookLongestComeFirst) {
  auto before = status_of({client_of(1, "fast", 10, 1'000'000us), client_of(2, "slow", 10, 0us)}, 0, 0);
  auto now = status_of({client_of(1, "fast", 20, 1'000'100us), client_of(2, "slow", 11, 50'000us),
                        client_of(3, "new", 2, 2'000us)},
                       0, 0);
  std::string text = format_top(before, now, 1s, 2);
  auto slow = text.find("slow "), fresh = text.find("new ");
  ASSERT_NE(slow, std::string::npos);
  ASSERT_NE(fresh, std::string::npos);
  EXPECT_LT(slow, fresh);
  EXPECT_THAT(text, Not(HasSubstr("fast"))) << "only two were asked for";
  EXPECT_THAT(text, ContainsRegex("slow +2 .* 1.0/s +50.0 ms"));
}

TEST(TopReport, ADaemonThatWasRestartedOrDoesNothingHasNoRates) {
  auto before = status_of({client_of(1, "idle", 100, 5'000us)}, 1'000, 500);
  auto now = status_of({client_of(1, "idle", 100, 4'000us)}, 10, 5);
  std::string text = format_top(before, now, 0s, 10);
  EXPECT_THAT(text, ContainsRegex("host .* 0/s +- +0/s"));
  EXPECT_THAT(text, ContainsRegex("idle .* 0/s +- "));
}

} // namespace
} // namespace terrace::cli
