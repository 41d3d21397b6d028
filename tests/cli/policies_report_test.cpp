#include "cli/status_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

client::policies_status example() {
  client::policies_status status;
  status.group = "default";
  status.tiers = {{"host", "arc", 12'031}};
  status.tracked = 30'000;
  status.known = {"lru", "arc"};
  for (const char* policy : {"lru", "arc"})
    for (uint64_t gib : {2, 1})
      status.shadows.push_back({.policy = policy,
                                .capacity_bytes = gib << 30,
                                .requests = 9,
                                .asked_bytes = 1000,
                                .hit_bytes = 100 * gib + (policy[0] == 'a' ? 50 : 0)});
  return status;
}

TEST(PoliciesReport, HasALineForEachPolicyAndAColumnForEachCapacity) {
  std::string text = format_policies(example());
  EXPECT_THAT(text, ContainsRegex("host +arc +12,031"));
  EXPECT_THAT(text, ContainsRegex("would have hit +1.00 GiB +2.00 GiB"));
  EXPECT_THAT(text, ContainsRegex("lru +10.0 % +20.0 %"));
  EXPECT_THAT(text, ContainsRegex("arc +15.0 % +25.0 %"));
  EXPECT_THAT(text, Not(HasSubstr("were skipped")));
}

TEST(PoliciesReport, SaysWhatIsMissing) {
  auto status = example();
  status.skipped_requests = 3;
  status.shadows.front().asked_bytes = 0;
  EXPECT_THAT(format_policies(status), HasSubstr("3 further requests skipped"));
  EXPECT_THAT(format_policies(status), ContainsRegex("lru +10.0 % +-"));
  status.shadows.clear();
  EXPECT_THAT(format_policies(status), HasSubstr("no shadow policies"));
}

TEST(PoliciesReport, JsonHasEveryField) {
  json j = to_json(example());
  EXPECT_EQ(j["tiers"][0]["policy"], "arc");
  EXPECT_EQ(j["shadows"][0]["capacity_bytes"], 2ULL << 30);
  EXPECT_EQ(j["shadows"][0]["hit_ratio"], 0.2);
  EXPECT_EQ(j["known"][1], "arc");
  EXPECT_EQ(j["tracked"], 30'000);
}

} // namespace
} // namespace terrace::cli
