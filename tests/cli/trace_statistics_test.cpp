#include "cli/trace_statistics.hpp"

#include <gtest/gtest.h>

namespace terrace::cli {
namespace trace_statistics_test {

trace_request asking(std::vector<uint64_t> ids, uint32_t tail = 0) {
  trace_request request;
  request.input_length = static_cast<uint32_t>(ids.size()) * trace_block_tokens;
  if (tail != 0)
    request.input_length -= trace_block_tokens - tail;
  request.hash_ids = std::move(ids);
  return request;
}

TEST(TraceStatistics, HitsEndAtTheFirstUnknownBlock) {
  trace_statistics s = measure({{asking({1, 2, 3}), asking({1, 2, 4}), asking({1, 5, 3})}});
  EXPECT_EQ(s.blocks, 9U);
  EXPECT_EQ(s.distinct_blocks, 6U); // a replay treats the 3 behind 5 as another block
  EXPECT_EQ(s.hit_blocks, 3U);      // {1, 2} and {1}; the second 3 follows a miss
}

TEST(TraceStatistics, ABegunBlockIsNeverAHit) {
  trace_statistics s = measure({{asking({1, 2}, 100), asking({1, 2}, 100)}});
  EXPECT_EQ(s.blocks, 2U);
  EXPECT_EQ(s.hit_blocks, 1U);
  EXPECT_DOUBLE_EQ(s.infinite_hit_ratio(), 512.0 / 1224.0);
}

TEST(TraceStatistics, SeesIdsBehindTwoPrefixes) {
  EXPECT_EQ(measure({{asking({1, 2}), asking({3, 2})}}).contradictions, 1U);
}

TEST(TraceStatistics, OfOneRequestHaveNoDispersion) {
  trace_statistics s = measure({{asking({1})}});
  EXPECT_EQ(s.burstiness, 0);
  EXPECT_EQ(s.seconds, 0);
  EXPECT_EQ(s.conversations, 1U);
}

} // namespace trace_statistics_test
} // namespace terrace::cli
