#include "base/random_id.hpp"

#include <gtest/gtest.h>

#include <set>

namespace terrace {
namespace {

TEST(RandomId, IsNeverEmptyAndNeverTheSame) {
  std::set<lease_id> seen;
  for (int i = 0; i < 1000; ++i) {
    auto id = random_lease_id();
    EXPECT_FALSE(id.empty());
    EXPECT_TRUE(seen.insert(id).second);
  }
  EXPECT_NE(random_boot_id(), random_boot_id());
}

} // namespace
} // namespace terrace
