#include "storage/store_id.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

TEST(StoreId, IsNewEachTime) { EXPECT_NE(random_store_id(), random_store_id()); }

TEST(StoreId, ReadsAsHexadecimal) {
  store_id id;
  id.bytes[0] = 0xab;
  id.bytes[15] = 0x01;
  EXPECT_EQ(to_hex(id), "ab000000000000000000000000000001");
}

} // namespace
} // namespace terrace
