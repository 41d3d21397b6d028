#include "group/tail_registry.hpp"

#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

#include <cstring>

using namespace terrace;

namespace {

struct StoredTails : ::testing::Test {
  static digest named(uint64_t number) {
    digest key;
    std::memcpy(key.bytes.data(), &number, sizeof number);
    return key;
  }
  bool kept(uint64_t number) const { return tails.referred(in->id, named(number)); }

  space_registry spaces{{.spaces_max = 2}};
  space_ptr in = spaces.open(terrace::test::small_space()).value();
  tail_registry tails;
  stored_tails stored{tails};
};

constexpr connection_id one{1}, another{2};

} // namespace

TEST_F(StoredTails, AreReferredToUntilTheyAreSavedOrTheirConnectionEnds) {
  stored.add(one, in, named(1));
  stored.add(one, in, named(1));
  stored.add(one, in, named(2));
  EXPECT_EQ(tails.references(tail_referrer::store), 2U);
  stored.saved(in->id, named(1));
  EXPECT_FALSE(kept(1));
  EXPECT_TRUE(kept(2));
  stored.saved(in->id, named(1)); // has no effect
  stored.end(one);
  EXPECT_FALSE(kept(2));
  EXPECT_EQ(stored.size(), 0U);
  stored.end(one);
}

TEST_F(StoredTails, WhoStoresItLastKeepsIt) {
  stored.add(one, in, named(1));
  stored.add(another, in, named(1));
  EXPECT_EQ(tails.next_unreferred().space, nullptr) << "at no time nobody did";
  stored.end(one);
  EXPECT_TRUE(kept(1));
  stored.end(another);
  EXPECT_FALSE(kept(1));
}

TEST_F(StoredTails, OfOneConnectionHaveABound) {
  for (uint64_t number = 0; number <= stored_tails::of_connection_max; ++number)
    stored.add(one, in, named(number + 1));
  stored.add(another, in, named(1'000'000));
  EXPECT_FALSE(kept(1)) << "the oldest one";
  EXPECT_TRUE(kept(2));
  EXPECT_EQ(stored.size(), stored_tails::of_connection_max + 1);
}
