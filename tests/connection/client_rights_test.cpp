#include "connection/handshake.hpp"

#include <gtest/gtest.h>

using namespace terrace;

TEST(ClientRights, TheDaemonsUserAndRootGovern) {
  EXPECT_TRUE(may_govern(0, 1000, "a clear removes everything"));
  EXPECT_TRUE(may_govern(1000, 1000, "a clear removes everything"));
  auto refused = may_govern(1001, 1000, "a clear removes everything");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::denied);
  EXPECT_EQ(refused.error().text,
            "expected the daemon's own user or root, got user 1001: a clear removes everything");
}

TEST(ClientRights, NothingOfAnIsolatedGroupIsMapped) {
  EXPECT_TRUE(may_map("shared", false, "load with a region"));
  auto refused = may_map("tenant", true, "load with a region");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::denied);
  EXPECT_EQ(refused.error().text, "nothing is mapped in the isolated group tenant; use load with a region");
}

TEST(ClientRights, ARefusalNamesTheSocket) {
  auto why = not_admitted(1001, 100, "/run/terrace.sock");
  EXPECT_EQ(why.code, errc::denied);
  EXPECT_EQ(why.text, "uid 1001, gid 100 may not use /run/terrace.sock; see uids and gids in its [[listen]]");
}
