#include "index/object_header.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

TEST(StoreId, IsNewEachTime) { EXPECT_NE(random_volume_id(), random_volume_id()); }

TEST(StoreId, ReadsAsHexadecimal) {
  volume_id id;
  id.bytes[0] = 0xab;
  id.bytes[15] = 0x01;
  EXPECT_EQ(to_hex(id), "ab000000000000000000000000000001");
}

} // namespace
} // namespace terrace
