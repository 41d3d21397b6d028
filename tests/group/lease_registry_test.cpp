#include "group/lease_registry.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

struct LeaseRegistry : ::testing::Test {
  lease_registry leases;

  static lease_id id(uint8_t number) {
    lease_id made;
    made.bytes.fill(number);
    return made;
  }
  lease_ptr take(uint8_t number, uint32_t owner) {
    auto taken = std::make_shared<lease>();
    taken->id = id(number);
    taken->owner = connection_id{owner};
    leases.add(taken->id, taken->owner, taken);
    return taken;
  }
};

} // namespace

TEST_F(LeaseRegistry, FindsALeaseUntilItsOwnerEndsIt) {
  auto taken = take(1, 7);
  EXPECT_EQ(leases.find(id(1)), taken);
  EXPECT_EQ(leases.find(id(2)), nullptr);
  leases.end(id(1), connection_id{7});
  EXPECT_EQ(leases.find(id(1)), nullptr);
  EXPECT_EQ(leases.size(), 0u);
}

TEST_F(LeaseRegistry, OnlyTheOwnerEndsALease) {
  auto taken = take(1, 7);
  auto other = take(2, 8);
  leases.end(id(1), connection_id{8});
  EXPECT_EQ(leases.find(id(1)), taken);
}

TEST_F(LeaseRegistry, AnOwnerThatEndsTakesAllItsLeases) {
  auto first = take(1, 7), second = take(2, 7), other = take(3, 8);
  leases.end(connection_id{7});
  EXPECT_EQ(leases.find(id(1)), nullptr);
  EXPECT_EQ(leases.find(id(2)), nullptr);
  EXPECT_EQ(leases.find(id(3)), other);
  EXPECT_EQ(leases.size(), 1u);
  leases.end(connection_id{9}); // owner 9 has no leases
}

TEST_F(LeaseRegistry, DoesNotKeepALease) {
  take(1, 7);
  EXPECT_EQ(leases.find(id(1)), nullptr);
}

TEST_F(LeaseRegistry, ARevokedLeaseIsNotFoundAndStaysListedUntilItsOwnerEndsIt) {
  auto taken = take(1, 7);
  EXPECT_TRUE(leases.mark_revoked(id(1)));
  EXPECT_TRUE(taken->revoked.is_set());
  EXPECT_EQ(leases.find(id(1)), nullptr);
  ASSERT_EQ(leases.list(0, 10).size(), 1u);
  EXPECT_TRUE(leases.list(0, 10)[0].revoked);
  EXPECT_TRUE(leases.mark_revoked(id(1))) << "again, for whoever was interrupted";
  leases.end(id(1), connection_id{7});
  EXPECT_TRUE(leases.list(0, 10).empty());
  EXPECT_FALSE(leases.mark_revoked(id(1)));
}

TEST_F(LeaseRegistry, ListsInTheOrderInWhichLeasesWereTaken) {
  std::vector<lease_ptr> taken;
  for (uint8_t i = 1; i <= 5; ++i)
    taken.push_back(take(i, 10 - i));
  leases.end(id(2), connection_id{8});
  auto first = leases.list(0, 2);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].id, id(1));
  EXPECT_EQ(first[0].owner, connection_id{9});
  EXPECT_EQ(first[1].id, id(3));
  auto rest = leases.list(first[1].number, 10);
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0].id, id(4));
  EXPECT_EQ(rest[1].id, id(5));
}
