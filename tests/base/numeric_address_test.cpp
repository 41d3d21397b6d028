#include "base/numeric_address.hpp"

#include <gtest/gtest.h>

namespace terrace {
namespace {

TEST(LoopbackAddress, TakesThisMachineOnly) {
  for (auto text : {"127.0.0.1:9464", "127.8.9.10:0", "[::1]:65535", "localhost:1"})
    EXPECT_TRUE(parse_loopback_address(text)) << text;
  for (auto text : {"0.0.0.0:9464", "10.0.0.1:9464", "[::]:9464", "[::ffff:10.0.0.1]:1", "example.org:80"})
    EXPECT_FALSE(parse_loopback_address(text)) << text;
}

TEST(LoopbackAddress, RefusesWhatIsNoAddress) {
  for (auto text : {"", ":", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                    "127.0.0.1:80x", "::1:80", "[127.0.0.1]:80", "[]:80", "[::1:80"})
    EXPECT_FALSE(parse_loopback_address(text)) << text;
}

TEST(LoopbackAddress, WritesWhatItRead) {
  EXPECT_EQ(parse_loopback_address("[::1]:80")->text(), "[::1]:80");
  EXPECT_EQ(parse_loopback_address("localhost:80")->text(), "127.0.0.1:80");
}

} // namespace
} // namespace terrace
