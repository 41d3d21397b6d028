#include "index/prefix_plan.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace terrace {
namespace unusable_objects_test {

/// Two ranks, and a pool that is stored once: objects 3 n and 3 n + 1 are ranks of chunk n, 3 n + 2 is replicated.
space_spec two_ranks() {
  space_spec spec;
  spec.world_size = 2;
  spec.pools = {{.name = "kv", .object_bytes = 4096},
                {.name = "once", .object_bytes = 4096, .replicated = true}};
  return spec;
}

object_bitmap present(std::initializer_list<size_t> objects) {
  object_bitmap all(12);
  for (size_t object : objects)
    all.set(object);
  return all;
}

struct UnusableObjects : ::testing::Test {
  std::vector<size_t> of(const object_bitmap& there, uint32_t first_chunk = 0) {
    return unusable_objects(two_ranks(), *ranks, there, first_chunk);
  }
  std::shared_ptr<rank_presence> ranks = std::make_shared<rank_presence>(2);
  std::optional<rank_presence::member> first{std::in_place, ranks, 0}, second{std::in_place, ranks, 1};
};

TEST_F(UnusableObjects, AreThoseWhoseMissingRankHasLeft) {
  auto there = present({0, 1, 2, 3, 5, 8, 9});
  EXPECT_EQ(of(there), std::vector<size_t>{}); // rank 1 may still store
  second.reset();
  EXPECT_EQ(of(there), (std::vector<size_t>{3, 9}));
  EXPECT_EQ(of(there, 2), std::vector<size_t>{9});
}

TEST_F(UnusableObjects, NeedTheLastConnectionOfTheRankToEnd) {
  auto another = std::make_unique<rank_presence::member>(ranks, 1);
  second.reset();
  EXPECT_EQ(of(present({0})), std::vector<size_t>{});
  another.reset();
  EXPECT_EQ(of(present({0})), std::vector<size_t>{0});
  another = std::make_unique<rank_presence::member>(ranks, 1);
  EXPECT_EQ(of(present({0})), std::vector<size_t>{});
}

TEST_F(UnusableObjects, AreNoneWhileARankHasNeverCome) {
  ranks = std::make_shared<rank_presence>(2);
  EXPECT_EQ(of(present({0})), std::vector<size_t>{});
}

} // namespace unusable_objects_test
} // namespace terrace
