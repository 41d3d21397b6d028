#include "cli/simulate_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

using testing::ElementsAre;

trace_request asking(uint64_t timestamp_ms, uint32_t tokens, std::vector<uint64_t> ids) {
  trace_request request;
  request.timestamp_ms = timestamp_ms;
  request.input_length = tokens;
  request.output_length = 7;
  request.hash_ids = std::move(ids);
  return request;
}

std::vector<simulate::chunk> accesses(const simulate::workload& of) {
  return {of.accesses().begin(), of.accesses().end()};
}

TEST(SimulateWorkload, TakesWholeBlocksOnly) {
  auto made = to_workload({{asking(5000, 1100, {1, 2, 3}), asking(6000, 1024, {1, 4})}}, 512);
  ASSERT_TRUE(made);
  EXPECT_THAT(accesses(*made), ElementsAre(0, 1, 0, 2));
  EXPECT_EQ(made->input_tokens(), 2124U);
  EXPECT_EQ(made->requests()[0].facts.at_ns, 0U);
  EXPECT_EQ(made->requests()[1].facts.at_ns, 1'000'000'000U);
  EXPECT_EQ(made->requests()[1].facts.output_tokens, 7U);
}

TEST(SimulateWorkload, LargerChunksAreSharedOnlyWhole) {
  auto made = to_workload({{asking(0, 2048, {1, 2, 3, 4}), asking(1, 2048, {1, 2, 3, 5})}}, 1024);
  ASSERT_TRUE(made);
  EXPECT_THAT(accesses(*made), ElementsAre(0, 1, 0, 2));
}

TEST(SimulateWorkload, SmallerChunksDivideABlock) {
  auto made = to_workload({{asking(0, 800, {1, 2}), asking(1, 800, {1, 3}), asking(2, 800, {1})}}, 256);
  ASSERT_TRUE(made);
  EXPECT_THAT(accesses(*made), ElementsAre(0, 1, 2, 0, 1, 3, 0, 1));
}

TEST(SimulateWorkload, SeveralTracesAreSpacesThatShareNothing) {
  auto made = to_workload(merge_traces({{{asking(5000, 512, {1}), asking(7000, 512, {1})}},
                                        {{asking(90, 1024, {1, 2}), asking(1090, 512, {1})}}}),
                          512);
  ASSERT_TRUE(made);
  EXPECT_THAT(accesses(*made), ElementsAre(0, 1, 2, 1, 0));
  std::vector<uint32_t> spaces;
  for (const simulate::request& request : made->requests())
    spaces.push_back(request.facts.space);
  EXPECT_THAT(spaces, ElementsAre(1, 2, 2, 1));
  EXPECT_EQ(made->requests()[3].facts.at_ns, 2'000'000'000U);
}

TEST(SimulateWorkload, TimeNeverGoesBack) {
  auto made = to_workload({{asking(5000, 512, {1}), asking(4000, 512, {1}), asking(7000, 512, {1})}}, 512);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->requests()[1].facts.at_ns, 0U);
  EXPECT_EQ(made->requests()[2].facts.at_ns, 2'000'000'000U);
}

TEST(SimulateWorkload, CarriesSessions) {
  trace two{{asking(0, 512, {1}), asking(1, 512, {1}), asking(2, 512, {1})}};
  two.requests[0].session_id = two.requests[1].session_id = "a";
  two.requests[1].turn = 2;
  auto made = to_workload(two, 512);
  ASSERT_TRUE(made);
  EXPECT_NE(made->requests()[0].facts.session, 0U);
  EXPECT_EQ(made->requests()[0].facts.session, made->requests()[1].facts.session);
  EXPECT_EQ(made->requests()[1].facts.turn, 2U);
  EXPECT_EQ(made->requests()[2].facts.session, 0U);
}

TEST(SimulateWorkload, RefusesChunksThatDoNotMatchTheBlocks) {
  EXPECT_EQ(to_workload({}, 0).error().code, exit_code::usage);
  EXPECT_EQ(to_workload({}, 768).error().code, exit_code::usage);
}

} // namespace
} // namespace terrace::cli
