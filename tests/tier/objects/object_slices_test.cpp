#include "tier/objects/scope_objects.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

TEST(Slice, CutsTheThreeVectorsAlikeAndSharesAWhole) {
  auto all = chain(0, 5);
  EXPECT_EQ(slice(all, 0, 5), all);
  auto part = slice(all, 1, 3);
  ASSERT_EQ(part->size(), 2u);
  EXPECT_EQ(part->keys[0], key_of(1));
  EXPECT_EQ(part->parents[1], to_entry_key(key_of(1)));
  EXPECT_EQ(part->payload_bytes.size(), 2u);
}
