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
            "listen: 1 sockets -> 2 sockets, needs a restart; the old value stays in force");
}

} // namespace
} // namespace terrace
