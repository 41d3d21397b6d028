#include "tier/search/recompute_choice.hpp"

#include "index/object_header.hpp"
#include "tests/index/spaces.hpp"

#include <gtest/gtest.h>

#include <string>

using namespace terrace;

namespace recompute_choice_test {

constexpr uint64_t object = physical_bytes_for(1 << 20); // the object of a chunk of 64 tokens

/// A client that computes a chunk in 1 ms; a disk that reads one in `chunk_ms`, with `queued` chunks to read.
struct RecomputeChoice : ::testing::Test {
  space_spec spec = terrace::test::small_space();
  recompute_terms terms{.tokens_per_s = 64'000};
  double chunk_ms = 2;
  uint64_t queued = 0; ///< bytes
  double idle_s = 0;
  double first_byte_ms = 0;
  double patience_s = 0; ///< of what was chosen last

  read_state disk() const {
    return {.bytes_per_s = object * 1000.0 / chunk_ms,
            .queued_bytes = queued,
            .idle_s = idle_s,
            .first_byte_s = first_byte_ms / 1000};
  }
  static tier_answer answer(tier_kind tier, const std::string& has) {
    tier_answer made{tier, object_bitmap(has.size())};
    for (size_t i = 0; i < has.size(); ++i)
      if (has[i] == '#')
        made.present.set(i);
    return made;
  }
  uint32_t chosen(const std::string& host, const std::string& on_disk) {
    auto chunks = static_cast<uint32_t>(host.size() / chunk_layout(spec).objects_per_chunk());
    prefix_planner planner(spec, {chunks, 0, UINT64_MAX},
                           {answer(tier_kind::host, host), answer(tier_kind::disk, on_disk)});
    while (planner.step())
      ;
    recompute_choice choice(planner, spec, terms);
    while (choice.step())
      ;
    patience_s = choice.patience_s();
    return choice.chunks();
  }
  /// Chooses among four chunks in host memory and four on the disk.
  uint32_t chosen() {
    terms.tiers[static_cast<size_t>(tier_kind::disk)] = disk();
    return chosen("####....", "....####");
  }
};

TEST_F(RecomputeChoice, ADiskThatIsFasterThanTheClientIsRead) {
  chunk_ms = 0.9;
  EXPECT_EQ(chosen(), 8u);
}

TEST_F(RecomputeChoice, ADiskThatIsSlowerThanTheClientIsNot) {
  chunk_ms = 1.1;
  EXPECT_EQ(chosen(), 4u);
}

TEST_F(RecomputeChoice, ATierThatNobodyMeasuresIsRead) { EXPECT_EQ(chosen("####....", "....####"), 8u); }

TEST_F(RecomputeChoice, WhatTheDiskHasToReadAlreadyCounts) {
  chunk_ms = 0.5; // four chunks in 2 ms instead of 4
  queued = 3 * object;
  EXPECT_EQ(chosen(), 8u);
  queued = 5 * object;
  EXPECT_EQ(chosen(), 4u);
}

TEST_F(RecomputeChoice, TheFirstByteCounts) {
  chunk_ms = 0.5; // four chunks in 2 ms instead of 4
  first_byte_ms = 1.9;
  EXPECT_EQ(chosen(), 8u);
  first_byte_ms = 2.1;
  EXPECT_EQ(chosen(), 4u);
}

TEST_F(RecomputeChoice, ALongReadIsWorthALatencyThatAShortOneIsNot) {
  chunk_ms = 0.1;
  first_byte_ms = 50;
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = disk();
  EXPECT_EQ(chosen(std::string(50, '.'), std::string(50, '#')), 0u);
  EXPECT_EQ(chosen(std::string(100, '.'), std::string(100, '#')), 100u);
}

TEST_F(RecomputeChoice, WhoeverReadsHasPatienceForTwiceTheEstimate) {
  terms.tokens_per_s = 640; // 100 ms
  chunk_ms = 20;
  first_byte_ms = 30;
  queued = object;
  EXPECT_EQ(chosen(), 8u);
  EXPECT_NEAR(patience_s, 2 * (0.03 + 5 * 0.02), 1e-6);
  chunk_ms = 0.1;
  first_byte_ms = 0;
  EXPECT_EQ(chosen(), 8u);
  EXPECT_EQ(patience_s, recompute_choice::patience_min_s);
}

TEST_F(RecomputeChoice, ATrialCostsTheTimeOfTwoChunksAtMost) {
  terms.tokens_per_s = 640; // 100 ms
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = read_state{};
  EXPECT_EQ(chosen("#...", "####"), 4u);
  EXPECT_NEAR(patience_s, 0.2, 1e-6);
  chunk_ms = 1e5;
  idle_s = 3600; // the tier was measured long ago
  EXPECT_EQ(chosen(), 8u);
  EXPECT_NEAR(patience_s, 0.2, 1e-6);
  idle_s = 0;
  chunk_ms = 150;
  idle_s = 8; // a chunk is paid for, as it takes 2 % of this
  EXPECT_EQ(chosen(), 5u);
  EXPECT_NEAR(patience_s, 0.3, 1e-6);
}

TEST_F(RecomputeChoice, ATierThatIsLateWithItsTrialGetsNoOther) {
  terms.tokens_per_s = 640;
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = read_state{.queued_bytes = object, .waits_s = 0.09};
  EXPECT_EQ(chosen("#...", "####"), 4u);
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = read_state{.queued_bytes = object, .waits_s = 0.11};
  EXPECT_EQ(chosen("#...", "####"), 1u);
}

TEST_F(RecomputeChoice, HostMemoryBehindASlowChunkIsWorthReadingIt) {
  chunk_ms = 3;
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = disk();
  EXPECT_EQ(chosen("##.#####.#", "..#.....#."), 8u); // 3 ms for 6; then 3 ms for 2
  EXPECT_EQ(chosen("##.#......", "..#.######"), 2u);
  EXPECT_EQ(chosen("##.#.", "..#.#"), 2u);
}

TEST_F(RecomputeChoice, OfATierThatWasNotMeasuredALittleIsRead) {
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = read_state{};
  constexpr uint32_t part = recompute_choice::trial_bytes / object;
  EXPECT_EQ(chosen("#" + std::string(99, '.'), std::string(100, '#')), 1 + part);
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = read_state{.queued_bytes = 5 * object};
  EXPECT_EQ(chosen("#" + std::string(99, '.'), std::string(100, '#')), 1 + part - 5);
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = read_state{.queued_bytes = 1 << 30};
  EXPECT_EQ(chosen("#" + std::string(99, '.'), std::string(100, '#')), 1u);
  spec.pools[0].object_bytes = 1 << 30;
  EXPECT_EQ(chosen("#...", "####"), 1u);
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = read_state{};
  EXPECT_EQ(chosen("#...", "####"), 2u); // at least one chunk
}

TEST_F(RecomputeChoice, ATierThatWasSlowIsTriedOnceATrialIsShortBesideTheTimeSinceItWasRead) {
  chunk_ms = 100;
  idle_s = 4.9;
  EXPECT_EQ(chosen(), 4u);
  idle_s = 5.1; // a chunk takes 2 % of this
  EXPECT_EQ(chosen(), 5u);
  idle_s = 11;
  EXPECT_EQ(chosen(), 6u);
  idle_s = 1000;
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = disk();
  EXPECT_EQ(chosen(std::string(100, '.'), std::string(100, '#')), recompute_choice::trial_bytes / object);
}

TEST_F(RecomputeChoice, AfterAnHourATrialIsMadeWhateverItTakes) {
  chunk_ms = 1e6;
  spec.pools[0].object_bytes = 100 << 20;
  idle_s = 3599;
  EXPECT_EQ(chosen(), 4u);
  idle_s = 3600;
  EXPECT_EQ(chosen(), 5u); // a trial usually reads less than this
}

TEST_F(RecomputeChoice, NoTrialWhileTheTierIsRead) {
  chunk_ms = 100;
  queued = 4096; // the disk is then not idle
  EXPECT_EQ(chosen(), 4u);
}

TEST_F(RecomputeChoice, OnlyAPrefixAtWhichAllRulesHoldIsOffered) {
  spec.pools.push_back(
      {.name = "state", .object_bytes = 1 << 20, .rule = hit_rule::trailing_chunks, .trailing = 1});
  chunk_ms = 10;
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = disk();
  // Attention in host memory up to chunk 6, then on the disk; states behind chunks 3, 6 and 8 only.
  std::string host = "#.#.###.#.##....", on_disk = "............#.##";
  EXPECT_EQ(chosen(host, on_disk), 6u);
  // The state behind chunk 6 is on the disk too: 20 ms for three chunks are too long.
  host = "#.#.###.#.#.....", on_disk = "...........##.##";
  EXPECT_EQ(chosen(host, on_disk), 3u);
  chunk_ms = 0.5; // a state that no window of the prefix needs is not read
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = disk();
  EXPECT_EQ(chosen(host, on_disk), 8u);
  queued = 2 * object + object / 2; // 2.75 ms for 8 chunks, 1.75 ms for 6
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = disk();
  EXPECT_EQ(chosen(host, on_disk), 8u);
}

TEST_F(RecomputeChoice, TiersAreReadInParallel) {
  chunk_ms = 0.7;
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = disk();
  terms.tiers[static_cast<size_t>(tier_kind::remote)] = disk();
  prefix_planner planner(spec, {4, 0, UINT64_MAX},
                         {answer(tier_kind::disk, "#.#."), answer(tier_kind::remote, ".#.#")});
  while (planner.step())
    ;
  terms.tokens_per_s = 128'000; // 0.5 ms per chunk: 1.4 ms instead of 2
  recompute_choice choice(planner, spec, terms);
  while (choice.step())
    ;
  EXPECT_EQ(choice.chunks(), 4u);
}

TEST_F(RecomputeChoice, LongPrefixesTakeSeveralSteps) {
  terms.tiers[static_cast<size_t>(tier_kind::disk)] = disk();
  size_t chunks = 3 * recompute_choice::step_objects;
  prefix_planner planner(
      spec, {static_cast<uint32_t>(chunks), 0, UINT64_MAX},
      {answer(tier_kind::host, std::string(chunks / 2, '#') + std::string(chunks / 2, '.')),
       answer(tier_kind::disk, std::string(chunks, '#'))});
  while (planner.step())
    ;
  recompute_choice choice(planner, spec, terms);
  size_t steps = 1;
  while (choice.step())
    ++steps;
  EXPECT_EQ(steps, 3u);
  EXPECT_EQ(choice.chunks(), chunks / 2);
}

} // namespace recompute_choice_test
