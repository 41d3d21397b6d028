#include "cli/simulate/workload.hpp"

#include "workloads.hpp"

#include <gtest/gtest.h>

namespace terrace::simulate {
namespace {

TEST(Workload, NumbersChunksInOrderOfFirstUse) {
  workload w = workload_of({{7, 8, 9}, {7, 5}, {7, 8}});
  EXPECT_EQ(std::vector<chunk>(w.accesses().begin(), w.accesses().end()),
            (std::vector<chunk>{0, 1, 2, 0, 3, 0, 1}));
  EXPECT_EQ(w.distinct_chunks(), 4U);
  EXPECT_EQ(w.requests().size(), 3U);
  EXPECT_EQ(w.chain(w.requests()[1])[1], 3U);
}

TEST(Workload, KnowsParents) {
  workload w = workload_of({{7, 8}, {7, 9}});
  EXPECT_EQ(w.parent(0), no_chunk);
  EXPECT_EQ(w.parent(1), 0U);
  EXPECT_EQ(w.parent(2), 0U);
}

TEST(Workload, AnIdBehindTwoPrefixesIsTwoChunks) {
  workload w = workload_of({{1, 5}, {2, 5}});
  EXPECT_EQ(w.distinct_chunks(), 4U);
  EXPECT_NE(w.accesses()[1], w.accesses()[3]);
}

TEST(Workload, CountsPartialTailsAsInput) {
  workload w(10);
  w.add({.input_tokens = 25}, std::vector<uint64_t>{1, 2});
  w.add({.input_tokens = 3}, {});
  EXPECT_EQ(w.input_tokens(), 28U);
  EXPECT_EQ(w.requests()[1].chunks, 0U);
  EXPECT_TRUE(w.chain(w.requests()[1]).empty());
}

} // namespace
} // namespace terrace::simulate
