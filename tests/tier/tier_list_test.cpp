#include "tier/tier_list.hpp"

#include "tier/search/prefix_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

using namespace terrace;

namespace tier_list_test {

struct index_of {
  bool none = false;
  bool empty() const { return none; }
};

struct entry {
  tier_kind kind = tier_kind::none;
  const index_of* index = nullptr;
  bool readable = true;
  std::string reason;

  bool reads() const { return readable; }
  const std::string& degraded() const { return reason; }
};

const index_of full{false}, nothing{true};

std::vector<tier_kind> kinds_searched(const std::vector<entry>& all) {
  searched_tiers searched(all, 0);
  return {searched.kinds().begin(), searched.kinds().end()};
}

uint32_t only(tier_kind kind) { return 1U << static_cast<unsigned>(kind); }

TEST(TierList, IsInTheOrderOfSpeed) {
  tier_list<entry> list;
  EXPECT_TRUE(list.tiers().empty());
  list.join({tier_kind::disk});
  list.join({tier_kind::host});
  ASSERT_EQ(list.tiers().size(), 2u);
  EXPECT_EQ(list.tiers()[0].kind, tier_kind::host);
  EXPECT_EQ(list.disk(), &list.tiers()[1]);
  EXPECT_EQ(list.tier(tier_kind::remote), nullptr);
}

TEST(TierList, HostMemoryIsFirst) {
  using kinds = std::vector<tier_kind>;
  kinds order{tier_kind::gpu, tier_kind::host, tier_kind::disk, tier_kind::remote};
  do {
    tier_list<entry> list;
    for (tier_kind each : order)
      list.join({each});
    kinds found;
    for (const entry& each : list.tiers())
      found.push_back(each.kind);
    EXPECT_EQ(found, (kinds{tier_kind::host, tier_kind::gpu, tier_kind::disk, tier_kind::remote}));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(TierList, AListThatWasReturnedStays) {
  tier_list<entry> list;
  list.join({tier_kind::host});
  const auto& before = list.tiers();
  list.join({tier_kind::disk});
  EXPECT_EQ(before.size(), 1u);
  EXPECT_EQ(list.tiers().size(), 2u);
}

TEST(SearchedTiers, AreThoseThatMayHaveSomething) {
  std::vector<entry> all{{tier_kind::host, &full}, {tier_kind::disk, &full}};
  EXPECT_EQ(kinds_searched(all), (std::vector{tier_kind::host, tier_kind::disk}));
  all[0].index = &nothing;
  EXPECT_EQ(kinds_searched(all), std::vector{tier_kind::disk});
  all[1].readable = false;
  EXPECT_EQ(searched_tiers(all, 0).size(), 0u);
}

TEST(SearchedTiers, AreThoseThatAreWanted) {
  std::vector<entry> all{{tier_kind::host, &full}, {tier_kind::disk, &full}};
  searched_tiers searched(all, only(tier_kind::disk));
  ASSERT_EQ(searched.size(), 1u);
  EXPECT_EQ(&searched[0], &all[1]);
}

TEST(SearchedTiers, AreEverythingUnlessATierMayHaveMore) {
  std::vector<entry> all{{tier_kind::host, &full}, {tier_kind::disk, &nothing}};
  searched_tiers searched(all, 0);
  EXPECT_TRUE(searched.everything(all)) << "an empty tier has nothing to find";
  all[1].index = &full;
  EXPECT_FALSE(searched.everything(all)) << "it was not searched";
  searched_tiers both(all, 0);
  EXPECT_TRUE(both.everything(all));
  all[1].reason = "a path cannot be read";
  EXPECT_FALSE(both.everything(all));
  EXPECT_FALSE(searched_tiers(all, only(tier_kind::host)).everything(all));
}

} // namespace tier_list_test
