#include "transfer/windows.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace terrace {
namespace {

uint64_t same(uint64_t bytes) { return bytes; }

TEST(Windows, HoldWholeChunksUpToTheLimit) {
  std::vector<uint64_t> bytes(10, 100);
  EXPECT_EQ(window_end(bytes, 0, 2, 450, same), 4u);
  EXPECT_EQ(window_end(bytes, 4, 2, 450, same), 8u);
  EXPECT_EQ(window_end(bytes, 8, 2, 450, same), 10u);
}

TEST(Windows, AChunkLargerThanTheLimitGoesAlone) {
  std::vector<uint64_t> bytes{1000, 1000, 1000};
  EXPECT_EQ(window_end(bytes, 0, 1, 10, same), 1u);
  EXPECT_EQ(window_end(bytes, 2, 1, 10, same), 3u);
}

TEST(Windows, HaveABoundedNumberOfObjects) {
  std::vector<uint64_t> bytes(9 * window_objects_max, 1);
  EXPECT_EQ(window_end(bytes, 0, 1, UINT64_MAX, same), window_objects_max);
  EXPECT_EQ(window_end(bytes, 0, 3, UINT64_MAX, same), window_objects_max / 3 * 3);
  EXPECT_EQ(window_end(bytes, 0, 3 * window_objects_max, UINT64_MAX, same), 3 * window_objects_max)
      << "one chunk";
}

TEST(Windows, CountWhatObjectsTakeOfTheArena) {
  std::vector<uint64_t> bytes(10, 1);
  auto pages = [](uint64_t payload) { return 4096 + (payload + 4095) / 4096 * 4096; };
  EXPECT_EQ(window_end(bytes, 0, 1, 3 * 8192, pages), 3u);
}

TEST(Windows, NothingLeftIsAnEmptyWindow) {
  std::vector<uint64_t> bytes{1, 1};
  EXPECT_EQ(window_end(bytes, 2, 1, 10, same), 2u);
}

} // namespace
} // namespace terrace
