#include "connection/lease_registry.hpp"

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
  leases.end(connection_id{9}); // has none
}

TEST_F(LeaseRegistry, DoesNotKeepALease) {
  take(1, 7);
  EXPECT_EQ(leases.find(id(1)), nullptr);
}
