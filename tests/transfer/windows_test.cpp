#include "transfer/windows.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace terrace {
namespace {

TEST(Windows, HoldWholeChunksUpToTheLimit) {
  std::vector<uint64_t> bytes(10, 100);
  EXPECT_EQ(window_end(bytes, 0, 2, 450), 4u);
  EXPECT_EQ(window_end(bytes, 4, 2, 450), 8u);
  EXPECT_EQ(window_end(bytes, 8, 2, 450), 10u);
}

TEST(Windows, AChunkLargerThanTheLimitGoesAlone) {
  std::vector<uint64_t> bytes{1000, 1000, 1000};
  EXPECT_EQ(window_end(bytes, 0, 1, 10), 1u);
  EXPECT_EQ(window_end(bytes, 2, 1, 10), 3u);
}

TEST(Windows, NothingLeftIsAnEmptyWindow) {
  std::vector<uint64_t> bytes{1, 1};
  EXPECT_EQ(window_end(bytes, 2, 1, 10), 2u);
}

} // namespace
} // namespace terrace
