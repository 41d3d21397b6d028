#include "group/session_holds.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

session_id session(uint8_t number) { return {{number}}; }
lease_ptr lease_of(uint8_t number) {
  auto made = std::make_shared<lease>();
  made->id = lease_id{{number}};
  return made;
}

TEST(SessionHolds, ASessionHoldsOneLease) {
  session_holds holds;
  auto first = lease_of(1), second = lease_of(2);
  EXPECT_EQ(holds.replace(session(1), first, 10), nullptr);
  EXPECT_EQ(holds.replace(session(1), second, 20), first);
  EXPECT_EQ(holds.size(), 1u);
  ASSERT_NE(holds.find(session(1)), nullptr);
  EXPECT_EQ(holds.find(session(1))->what, second);
  EXPECT_EQ(holds.find(session(1))->host_bytes, 20u);
  EXPECT_EQ(holds.end(first->id), nullptr) << "it is held no longer";
  EXPECT_EQ(holds.end(second->id), second);
  EXPECT_EQ(holds.find(session(1)), nullptr);
  EXPECT_EQ(holds.end(session(1)), nullptr);
}

TEST(SessionHolds, TheColdestIsTheOneThatWasUsedLeastRecently) {
  session_holds holds;
  for (uint8_t n = 1; n <= 3; ++n)
    holds.replace(session(n), lease_of(n), n);
  holds.touch(session(1));
  holds.touch(session(9)); // session 9 holds nothing
  auto coldest = holds.end_coldest(session(1));
  ASSERT_TRUE(coldest);
  EXPECT_EQ(coldest->session, session(2));
  EXPECT_EQ(coldest->host_bytes, 2u);
  holds.replace(session(3), lease_of(4), 4); // a save counts as a use
  EXPECT_EQ(holds.end_coldest(session(1))->session, session(3)) << "the coldest but one";
  holds.replace(session(3), lease_of(5), 4);
  EXPECT_EQ(holds.end_coldest(session(3))->session, session(1));
  EXPECT_FALSE(holds.end_coldest(session(3))) << "it is the only one";
  EXPECT_EQ(holds.end_coldest(session(1))->session, session(3));
  EXPECT_FALSE(holds.end_coldest(session(1)));
}

} // namespace
} // namespace terrace
