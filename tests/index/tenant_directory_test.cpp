// Tests which tenant a space belongs to, by its salt.
#include "index/tenant_directory.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

tenant_quota quota(std::string name, std::string salt, bool rule = false) {
  tenant_quota made{std::move(name), std::move(salt), rule, {}};
  made.in(tier_kind::host).max = quota_part{100, false};
  return made;
}

struct TenantDirectory : ::testing::Test {
  tenant_directory directory;
  tenant_directory::capacities tiers{0, 1000, 0, 0};

  TenantDirectory() {
    directory.set_quotas({quota("all", "", true), quota("batch", "batch-", true), quota("one", "batch-one")});
  }
  std::string name_of(uint32_t space) {
    auto tenant = directory.tenant_of(space_id{space});
    auto terms = tenant ? directory.terms_of(*tenant, tier_kind::host) : std::nullopt;
    return terms ? terms->name + "#" + std::to_string(terms->number) : "nobody";
  }
};

} // namespace

TEST_F(TenantDirectory, AListedSaltGoesBeforeRulesAndTheLongestRuleBeforeOthers) {
  directory.opened(space_id{1}, "batch-one");
  directory.opened(space_id{2}, "batch-two");
  directory.opened(space_id{3}, "batch-three");
  directory.opened(space_id{4}, "else");
  directory.opened(space_id{5}, "");
  directory.opened(space_id{6}, "batch-two");
  EXPECT_EQ(name_of(1), "one#0");
  EXPECT_EQ(name_of(2), "batch#1");
  EXPECT_EQ(name_of(3), "batch#2");
  EXPECT_EQ(name_of(4), "all#1");
  EXPECT_EQ(name_of(5), "nobody") << "it has no salt";
  EXPECT_EQ(name_of(6), "batch#1") << "the same tenant";
  EXPECT_FALSE(directory.tenant_of(space_id{7})) << "nobody has opened it";
}

TEST_F(TenantDirectory, ATenantKeepsItsNumberWhileTheNameStays) {
  directory.opened(space_id{1}, "batch-1");
  directory.opened(space_id{2}, "batch-2");
  auto second = directory.tenant_of(space_id{2});
  directory.set_quotas({quota("batch", "batch-", true)});
  EXPECT_EQ(name_of(2), "batch#2");
  EXPECT_EQ(directory.tenant_of(space_id{2}), second);
  directory.set_quotas({});
  EXPECT_EQ(name_of(2), "nobody");
  directory.set_quotas({quota("listed", "batch-2")});
  EXPECT_EQ(name_of(1), "nobody");
  EXPECT_EQ(name_of(2), "listed#0") << "of a space that was opened before";
}

TEST_F(TenantDirectory, ForgetsTenantsByRuleWithTheirLastSpace) {
  directory.opened(space_id{1}, "x");
  directory.opened(space_id{2}, "x");
  auto tenant = directory.tenant_of(space_id{1});
  std::vector<space_id> first{space_id{1}}, second{space_id{2}};
  directory.forgotten(first);
  EXPECT_TRUE(directory.terms_of(*tenant, tier_kind::host));
  directory.forgotten(second);
  EXPECT_FALSE(directory.terms_of(*tenant, tier_kind::host));
  directory.opened(space_id{3}, "x");
  EXPECT_EQ(name_of(3), "all#2");
}

TEST_F(TenantDirectory, ChangesAreCheckedAndNameWhatThereIs) {
  auto unknown = directory.change("two", tier_kind::host, {}, tiers);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, errc::not_found);
  EXPECT_NE(unknown.error().text.find("all, batch, one"), std::string::npos);
  EXPECT_EQ(directory.change("one", tier_kind::disk, {}, tiers).error().code, errc::not_found);
  EXPECT_EQ(directory.change("one", tier_kind::host, {{}, quota_part{101}, false}, tiers).error().code,
            errc::bad_request);
  EXPECT_TRUE(
      directory.change("one", tier_kind::host, {quota_part{50, true}, quota_part{500}, false}, tiers));
  auto too_much = directory.change("all", tier_kind::host, {{}, quota_part{600}, true}, tiers);
  ASSERT_FALSE(too_much);
  EXPECT_NE(too_much.error().text.find("at most the tier together"), std::string::npos);
  EXPECT_EQ(directory.quotas()[0], quota("all", "", true)) << "unchanged";
  EXPECT_EQ(directory.quotas()[2].in(tier_kind::host).max->bytes_of(1000), 500U);
}
