#include "group/session_holds.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

session_id session(uint8_t number) { return {{number}}; }
session_hold_facts hold(uint8_t lease, uint64_t bytes) { return {lease_id{{lease}}, bytes}; }

TEST(SessionHolds, ASessionHoldsOneLease) {
  session_holds holds;
  holds.replace(session(1), hold(1, 10));
  holds.replace(session(1), hold(2, 20));
  EXPECT_EQ(holds.size(), 1u);
  ASSERT_NE(holds.find(session(1)), nullptr);
  EXPECT_EQ(holds.find(session(1))->what.lease, lease_id{{2}});
  EXPECT_EQ(holds.find(session(1))->what.host_bytes, 20u);
  EXPECT_EQ(holds.find(lease_id{{1}}), nullptr) << "it is held no longer";
  ASSERT_NE(holds.find(lease_id{{2}}), nullptr);
  EXPECT_EQ(holds.find(lease_id{{2}})->session, session(1));
  EXPECT_EQ(holds.end(session(1)), lease_id{{2}});
  EXPECT_EQ(holds.find(session(1)), nullptr);
  EXPECT_EQ(holds.find(lease_id{{2}}), nullptr);
  EXPECT_EQ(holds.end(session(1)), std::nullopt);
}

TEST(SessionHolds, TheColdestIsTheOneThatWasUsedLeastRecently) {
  session_holds holds;
  for (uint8_t n = 1; n <= 3; ++n)
    holds.replace(session(n), hold(n, n));
  holds.touch(session(1));
  holds.touch(session(9)); // session 9 holds nothing
  const auto* coldest = holds.coldest(session(1));
  ASSERT_NE(coldest, nullptr);
  EXPECT_EQ(coldest->session, session(2));
  EXPECT_EQ(coldest->what.host_bytes, 2u);
  holds.end(session(2));
  holds.replace(session(3), hold(4, 4)); // a save counts as a use
  EXPECT_EQ(holds.coldest(session(1))->session, session(3)) << "the coldest but one";
  EXPECT_EQ(holds.coldest(session(3))->session, session(1));
  holds.end(session(1));
  EXPECT_EQ(holds.coldest(session(3)), nullptr) << "it is the only one";
  EXPECT_EQ(holds.coldest(session(1))->session, session(3));
}

} // namespace
} // namespace terrace
