#include "daemon/settings.hpp"

#include "settings_support.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> texts(const settings& before, const settings& after) {
  std::vector<std::string> lines;
  for (const auto& change : changes_at_run_time(before, after))
    lines.push_back(change.text());
  return lines;
}

TEST(Reload, SaysNothingWhenNothingChanged) {
  auto s = default_settings(test_environment());
  EXPECT_TRUE(changes_at_run_time(s, s).empty());
}

TEST(Reload, SaysWhatIsInForceAndWhatNeedsARestart) {
  auto before = default_settings(test_environment());
  auto after = before;
  after.daemon.log_level = "debug";
  after.host.bytes = 2 * gibibyte;
  after.host.huge_pages = true;
  after.listen[0].uids = {1, 2};
  EXPECT_EQ(texts(before, after),
            (std::vector<std::string>{
                "daemon.log_level: \"info\" -> \"debug\", in force now",
                "listen[0].uids: [] -> [1, 2], needs a restart; the old value stays in force",
                "host.bytes: \"1GiB\" -> \"2GiB\", in force now",
                "host.huge_pages: false -> true, needs a restart; the old value stays in force"}));
}

TEST(Reload, AppliesOnlyWhatCanChangeAtRunTime) {
  auto before = default_settings(test_environment());
  auto after = before;
  after.daemon.log_level = "debug";
  after.daemon.shutdown_grace = 1s;
  after.disk.depth = 64;
  after.host.bytes = 2 * gibibyte;
  auto merged = apply_at_run_time(before, after);
  EXPECT_EQ(merged.daemon.log_level, "debug");
  EXPECT_EQ(merged.daemon.shutdown_grace, 10s);
  EXPECT_EQ(merged.disk.depth, 32u);
  EXPECT_EQ(merged.host.bytes, 2 * gibibyte);
  for (const auto& change : changes_at_run_time(merged, after))
    EXPECT_FALSE(change.at_run_time) << change.text();
}

TEST(Reload, CountsSocketsThatCameAndWent) {
  auto before = default_settings(test_environment());
  auto after = before;
  after.listen.push_back({.path = "/b", .group = "b"});
  EXPECT_EQ(texts(before, after).front(),
            "listen: 1 socket -> 2 sockets, needs a restart; the old value stays in force");
}

settings with_remotes(const std::vector<std::string>& groups) {
  auto with = default_settings(test_environment());
  for (const std::string& group : groups)
    with.remote.push_back({.address = "10.0.0.7:6379", .group = group});
  return with;
}

TEST(Reload, ABudgetOfARemoteTierIsInForceAndItsOtherOptionsAreNot) {
  auto before = with_remotes({"a", "b"});
  auto after = before;
  after.remote[1].write_budget = "1MiB/s";
  after.remote[1].address = "10.0.0.8:6379";
  EXPECT_EQ(texts(before, after),
            (std::vector<std::string>{"remote[1].address: \"10.0.0.7:6379\" -> \"10.0.0.8:6379\", needs a "
                                      "restart; the old value stays in force",
                                      "remote[1].write_budget: \"\" -> \"1MiB/s\", in force now"}));
  auto merged = apply_at_run_time(before, after);
  EXPECT_EQ(merged.remote[0].write_budget, "");
  EXPECT_EQ(merged.remote[1].write_budget, "1MiB/s");
  EXPECT_EQ(merged.remote[1].address, "10.0.0.7:6379");
}

TEST(Reload, RemoteTiersOfOtherGroupsChangeNothing) {
  const auto before = with_remotes({"a", "b"});
  for (const auto& groups : std::vector<std::vector<std::string>>{{"b", "a"}, {"a"}, {"a", "b", "c"}, {}}) {
    auto after = with_remotes(groups);
    for (remote_options& each : after.remote)
      each.write_budget = "1MiB/s";
    EXPECT_EQ(texts(before, after),
              (std::vector<std::string>{"remote: 2 remote tiers -> " + std::to_string(groups.size()) +
                                        (groups.size() == 1 ? " remote tier" : " remote tiers") +
                                        ", needs a restart; the old value stays in force"}));
    EXPECT_EQ(apply_at_run_time(before, after).remote, before.remote);
  }
}

} // namespace
} // namespace terrace
