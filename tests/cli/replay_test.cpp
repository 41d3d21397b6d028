#include "cli/replay.hpp"
#include "cli/trace_generator.hpp"
#include "cli/trace_statistics.hpp"
#include "map_target.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace terrace::cli {
namespace replay_test {

using testing::HasSubstr;

constexpr size_t object_bytes = 1000; // not a multiple of the word that content is made of
constexpr uint64_t block = trace_block_tokens;

trace_request asking(std::vector<uint64_t> ids, uint32_t tail = 0) {
  trace_request request;
  request.input_length = static_cast<uint32_t>(ids.size() * block) - (tail == 0 ? 0 : block - tail);
  request.hash_ids = std::move(ids);
  return request;
}

replay_counts replayed(const trace& requests, map_cache& cache, size_t clients = 1,
                       size_t buffer_objects = 4) {
  std::vector<std::unique_ptr<replay_target>> targets;
  for (size_t i = 0; i < clients; ++i)
    targets.push_back(std::make_unique<map_target>(cache, object_bytes, buffer_objects));
  interruption never;
  return replay_trace(requests, targets, {}, never, [](const replay_counts&) {});
}

TEST(ChainDigests, NameWholePrefixes) {
  auto a = chain_digests(asking({1, 2, 3}));
  auto b = chain_digests(asking({1, 2, 4}));
  auto c = chain_digests(asking({9, 2, 3}));
  ASSERT_EQ(a.size(), 3U);
  EXPECT_EQ(a[1], b[1]);
  EXPECT_NE(a[2], b[2]);
  EXPECT_NE(a[1], c[1]); // the same id after another prefix
}

TEST(ChainDigests, LeaveOutTheBegunBlock) { EXPECT_EQ(chain_digests(asking({1, 2}, 100)).size(), 1U); }

TEST(ChainDigests, AreOfChunksOfAnotherSize) {
  trace_request request = asking({1, 2, 3}, 100);
  EXPECT_EQ(chain_digests(request, 256).size(), 4U);
  EXPECT_EQ(chain_digests(request, 1024).size(), 1U);
  EXPECT_EQ(chain_digests(request, 256)[1], chain_digests(asking({1, 5}), 256)[1]);
  EXPECT_NE(chain_digests(request, 256)[0], chain_digests(request, 256)[1]);
}

TEST(ChainDigests, StayTheSameBetweenVersions) { // a replay finds what an earlier one stored
  EXPECT_EQ(to_hex(chain_digests(asking({1}))[0]),
            "e65623b1ff5c9c463f791f4d5beb027401ee867bf06d1b2ed39fa44f3f175ece");
}

TEST(Replay, CountsChunksOfAnotherSize) {
  map_cache cache;
  std::vector<std::unique_ptr<replay_target>> targets;
  targets.push_back(std::make_unique<map_target>(cache, object_bytes, 4));
  interruption never;
  auto c = replay_trace({{asking({1, 2, 3}), asking({1, 2, 4})}}, targets, {.chunk_tokens = 128}, never,
                        [](const replay_counts&) {});
  EXPECT_EQ(c.stored_chunks, 16U);
  EXPECT_EQ(c.chunk_tokens, 6 * block);
  EXPECT_EQ(c.hit_tokens[static_cast<size_t>(tier_kind::host)] +
                c.hit_tokens[static_cast<size_t>(tier_kind::disk)],
            2 * block);
}

TEST(Replay, HitsWhatItStored) {
  map_cache cache;
  replay_counts c = replayed({{asking({1, 2, 3}), asking({1, 2, 4})}}, cache);
  EXPECT_EQ(c.requests, 2U);
  EXPECT_EQ(c.input_tokens, 6 * block);
  EXPECT_EQ(c.hit_tokens[static_cast<size_t>(tier_kind::host)], block);
  EXPECT_EQ(c.hit_tokens[static_cast<size_t>(tier_kind::disk)], block);
  EXPECT_EQ(c.loaded_bytes[static_cast<size_t>(tier_kind::host)], object_bytes);
  EXPECT_EQ(c.stored_chunks, 4U);
  EXPECT_EQ(c.stored_bytes, 4 * object_bytes);
  EXPECT_EQ(c.wrong_bytes, 0U);
  EXPECT_DOUBLE_EQ(c.hit_ratio(), 2.0 / 6);
  EXPECT_TRUE(c.sound());
}

TEST(Replay, TheBegunBlockIsNeitherStoredNorCountedAsAHit) {
  map_cache cache;
  replay_counts c = replayed({{asking({1, 2}, 100), asking({1, 2}, 100), asking({7}, 10)}}, cache);
  EXPECT_EQ(cache.objects.size(), 1U);
  EXPECT_EQ(c.all_hit_tokens(), block);
  EXPECT_EQ(c.requests, 3U);
  EXPECT_EQ(cache.lookups, 2U); // the third request has no whole block to look up
}

TEST(Replay, OfAGeneratedTraceReachesTheInfiniteCachesRatio) {
  trace_options options;
  options.requests = 200;
  options.branch = 0.3;
  trace t = *generate_trace(options);
  map_cache cache;
  replay_counts c = replayed(t, cache);
  EXPECT_DOUBLE_EQ(c.hit_ratio(), measure(t).infinite_hit_ratio());
  EXPECT_EQ(cache.objects.size(), measure(t).distinct_blocks);
  EXPECT_EQ(c.wrong_bytes, 0U);
  map_cache again;
  EXPECT_EQ(replayed(t, again).all_hit_tokens(), c.all_hit_tokens());
}

TEST(Replay, GoesInPiecesOfTheBuffer) {
  map_cache cache;
  replay_counts c = replayed({{asking({1, 2, 3, 4, 5, 6, 7}), asking({1, 2, 3, 4, 5, 6, 7})}}, cache, 1, 3);
  EXPECT_EQ(cache.stores, 3U);
  EXPECT_EQ(cache.largest_store, 3U);
  EXPECT_EQ(cache.loads, 3U);
  EXPECT_EQ(c.all_hit_tokens(), 7 * block);
  EXPECT_EQ(c.wrong_bytes, 0U);
}

TEST(Replay, SeesAWrongByteAndSaysWhere) {
  map_cache cache;
  cache.corrupt_chunk = 1;
  replay_counts c = replayed({{asking({1, 2}), asking({1, 2})}}, cache);
  EXPECT_EQ(c.wrong_bytes, 1U);
  EXPECT_EQ(c.wrong_objects, 1U);
  EXPECT_THAT(c.first_wrong, HasSubstr("request 2, chunk 1"));
  EXPECT_FALSE(c.sound());
}

TEST(Replay, StoresAnewWhatWasFoundButDidNotCome) {
  map_cache cache;
  cache.deliver_at_most = 1;
  replay_counts c = replayed({{asking({1, 2, 3}), asking({1, 2, 3})}}, cache);
  EXPECT_EQ(c.undelivered_chunks, 2U);
  EXPECT_EQ(c.present_chunks, 2U);
  EXPECT_TRUE(c.sound());
}

TEST(Replay, WhatIsFasterComputedIsCountedAndIsNoHit) {
  map_cache cache;
  cache.offer_at_most = 1;
  replay_counts c = replayed({{asking({1, 2, 3}), asking({1, 2, 3})}}, cache);
  EXPECT_EQ(c.recompute_chunks, 2U);
  EXPECT_EQ(c.all_hit_tokens(), block);
  EXPECT_EQ(c.undelivered_chunks, 0U);
  EXPECT_EQ(c.present_chunks, 2U);
}

TEST(Replay, CountsErrorsByCodeAndGoesOn) {
  map_cache cache;
  cache.capacity = 2;
  replay_counts c = replayed({{asking({1, 2, 3}), asking({4, 5}), asking({1, 2})}}, cache);
  EXPECT_EQ(c.requests, 3U);
  EXPECT_EQ(c.errors[errc::no_space].count, 2U);
  EXPECT_EQ(c.errors[errc::no_space].first_text, "all objects are leased");
  EXPECT_EQ(c.all_hit_tokens(), 2 * block);
  EXPECT_TRUE(c.sound()); // a full cache is not an error
}

TEST(Replay, TellsEachInferenceAndItsEndInTheTracesTime) {
  trace t{{asking({1}), asking({2}), asking({3}), asking({4})}};
  for (size_t i = 0; i < 4; ++i)
    t.requests[i].timestamp_ms = 5'000 + 1'000 * i;
  t.requests[0].output_length = 1'500;
  t.requests[1].output_length = 20;
  t.requests[0].session_id = "a";
  t.requests[0].turn = 3;
  t.requests[1].reason = finish_reason::tool_call;
  t.requests[1].think_ms = 700;
  t.requests[2].session_closed = true;
  t.requests[2].timestamp_ms = 0; // the clock went back
  map_cache cache;
  std::vector<std::unique_ptr<replay_target>> targets;
  targets.push_back(std::make_unique<map_target>(cache, object_bytes, 4));
  interruption never;
  replay_trace(t, targets, {.token_time = std::chrono::milliseconds(1)}, never, [](const replay_counts&) {});
  ASSERT_EQ(cache.begun.size(), 4U);
  EXPECT_EQ(cache.begun[0].session, t.requests[0].session_number());
  EXPECT_EQ(cache.begun[0].turn, 3U);
  std::vector<int64_t> begun, ended;
  for (auto& facts : cache.begun)
    begun.push_back(facts.time / std::chrono::milliseconds(1));
  EXPECT_EQ(begun, (std::vector<int64_t>{0, 1'000, 1'000, 3'000}));
  std::vector<uint64_t> order;
  for (auto& [inference, outcome] : cache.ended) {
    order.push_back(inference);
    ended.push_back(outcome.time / std::chrono::milliseconds(1));
  }
  EXPECT_EQ(order, (std::vector<uint64_t>{3, 2, 1, 4}));
  EXPECT_EQ(ended, (std::vector<int64_t>{1'000, 1'020, 1'500, 3'000}));
  EXPECT_EQ(cache.ended[2].second.output_tokens, 1'500U);
  EXPECT_EQ(cache.ended[1].second.reason, finish_reason::tool_call);
  EXPECT_EQ(cache.ended[1].second.think_time, std::chrono::milliseconds(700));
  EXPECT_TRUE(cache.ended[0].second.session_closed);
  EXPECT_FALSE(cache.ended[1].second.session_closed);
}

TEST(Replay, EndsWhenTheCacheIsLost) {
  map_cache cache;
  cache.lost_after = 2;
  replay_counts c = replayed({{asking({1}), asking({2}), asking({3}), asking({4})}}, cache);
  EXPECT_TRUE(c.lost);
  EXPECT_EQ(c.requests, 3U);
  EXPECT_EQ(c.errors[errc::gone].count, 1U);
  EXPECT_FALSE(c.sound());
}

TEST(Replay, EndsAfterTheRequestInWhichItIsInterrupted) {
  map_cache cache;
  std::vector<std::unique_ptr<replay_target>> targets;
  targets.push_back(std::make_unique<map_target>(cache, object_bytes, 4));
  interruption stop;
  replay_counts c = replay_trace({{asking({1}), asking({2}), asking({3})}}, targets, {}, stop,
                                 [&](const replay_counts&) { stop.request(); });
  EXPECT_EQ(c.requests, 1U);
  EXPECT_TRUE(c.sound());
}

TEST(Replay, AtATracesPaceDoesNotSleepBeyondAnInterruption) {
  map_cache cache;
  std::vector<std::unique_ptr<replay_target>> targets;
  targets.push_back(std::make_unique<map_target>(cache, object_bytes, 4));
  trace t{{asking({1}), asking({2})}};
  t.requests[1].timestamp_ms = 1ULL << 40; // the request comes decades later
  interruption stop;
  replay_counts c =
      replay_trace(t, targets, {.speed = 1}, stop, [](const replay_counts&) { std::raise(SIGINT); });
  EXPECT_EQ(c.requests, 1U);
}

TEST(Replay, ManyClientsShareTheTraceAndTheCache) {
  trace_options options;
  options.requests = 300;
  trace t = *generate_trace(options);
  map_cache cache;
  replay_counts c = replayed(t, cache, 4);
  EXPECT_EQ(c.requests, 300U);
  EXPECT_EQ(c.input_tokens, measure(t).input_tokens);
  EXPECT_EQ(cache.objects.size(), measure(t).distinct_blocks);
  EXPECT_EQ(c.wrong_bytes, 0U);
  EXPECT_EQ(c.request.summary().count, c.lookup.summary().count);
}

TEST(Replay, PrefetchesEachRequestBeforeItArrives) {
  trace t{{asking({1, 2}), asking({1, 3}), asking({}, 0)}};
  for (size_t i = 0; i < t.requests.size(); ++i)
    t.requests[i].timestamp_ms = 10 + 5 * i;
  map_cache cache;
  std::vector<std::unique_ptr<replay_target>> targets;
  targets.push_back(std::make_unique<map_target>(cache, object_bytes, 4));
  interruption never;
  std::vector<size_t> prefetched_before;
  auto counts = replay_trace(t, targets, {.speed = 1, .prefetch = std::chrono::milliseconds(7)}, never,
                             [&](const replay_counts&) { prefetched_before.push_back(cache.prefetches); });
  EXPECT_THAT(prefetched_before, testing::ElementsAre(2U, 2U, 2U))
      << "the second is due before the first arrives";
  EXPECT_EQ(counts.ahead.requests, 2U);
  EXPECT_EQ(counts.ahead.expected, 4U);
  EXPECT_EQ(counts.ahead.delivered, 3U);
  EXPECT_EQ(counts.wait[static_cast<size_t>(tier_kind::host)].summary().count, 1U) << "of the only hit";
}

TEST(Replay, WithoutPaceNothingIsPrefetched) {
  map_cache cache;
  std::vector<std::unique_ptr<replay_target>> targets;
  targets.push_back(std::make_unique<map_target>(cache, object_bytes, 4));
  interruption never;
  replay_trace({{asking({1})}}, targets, {.prefetch = std::chrono::milliseconds(7)}, never,
               [](const replay_counts&) {});
  EXPECT_EQ(cache.prefetches, 0U);
}

} // namespace replay_test
} // namespace terrace::cli
