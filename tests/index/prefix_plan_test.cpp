#include "index/prefix_plan.hpp"
#include "tests/index/spaces.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <random>

namespace terrace::test {
namespace {

constexpr auto host = tier_kind::host, disk = tier_kind::disk, remote = tier_kind::remote,
               none = tier_kind::none;

space_spec with_pools(std::vector<pool_spec> pools, uint32_t world_size = 1) {
  auto spec = small_space(); // chunks of 64
  spec.pools = std::move(pools);
  spec.world_size = world_size;
  return spec;
}

const pool_spec kv{"kv", 64};
pool_spec trailing(uint32_t n) { return {"state", 64, hit_rule::trailing_chunks, n}; }

/// Makes the answer of a tier that has the objects in a text such as "10110".
tier_answer answer(tier_kind tier, const std::string& bits) {
  tier_answer a{tier, object_bitmap(bits.size())};
  for (size_t i = 0; i < bits.size(); ++i)
    if (bits[i] == '1')
      a.present.set(i);
  return a;
}

prefix_plan plan(const space_spec& spec, uint32_t chunks, const std::vector<tier_answer>& answers,
                 uint64_t prompt_tokens = 1'000'000) {
  return make_prefix_plan(spec, {chunks, 0, prompt_tokens}, answers);
}

TEST(PrefixPlan, MayAlternateBetweenTiers) {
  auto p = plan(with_pools({kv}), 4, {answer(host, "1010"), answer(disk, "0100")});
  EXPECT_EQ(p.found_chunks, 3u);
  EXPECT_EQ(p.found_tokens, 192u);
  EXPECT_EQ(p.usable_tokens, 192u);
  EXPECT_EQ(p.chunk_tiers, (std::vector{host, disk, host}));
}

TEST(PrefixPlan, TakesTheFastestTierOfEachChunk) {
  auto p = plan(with_pools({kv}), 2, {answer(remote, "11"), answer(host, "10"), answer(disk, "11")});
  EXPECT_EQ(p.chunk_tiers, (std::vector{host, disk}));
}

TEST(PrefixPlan, EndsAtTheFirstChunkThatNobodyHas) {
  auto p = plan(with_pools({kv}), 4, {answer(host, "1001"), answer(disk, "0001")});
  EXPECT_EQ(p.missing, (prefix_object{1, 0, 0}));
  EXPECT_EQ(p.found_chunks, 1u);
  EXPECT_EQ(p.object_tiers.size(), 1u);
}

TEST(PrefixPlan, FindsNothingWithoutAnswers) {
  auto p = plan(with_pools({kv}), 4, {});
  EXPECT_EQ(p.requested_chunks, 4u);
  EXPECT_EQ(p.found_chunks, 0u);
  EXPECT_EQ(p.usable_tokens, 0u);
  EXPECT_TRUE(p.chunk_tiers.empty());
  EXPECT_EQ(plan(with_pools({kv}), 0, {}, 0).found_chunks, 0u);
}

TEST(PrefixPlan, NeedsAllRanksOfAChunk) {
  auto spec = with_pools({kv}, 2); // c0r0 c0r1 c1r0 c1r1 ...
  auto p = plan(spec, 3, {answer(host, "111010"), answer(disk, "000100")});
  EXPECT_EQ(p.found_chunks, 2u);
  EXPECT_EQ(p.chunk_tiers, (std::vector{host, disk})); // as fast as the slowest rank
  EXPECT_EQ(p.object_tiers, (std::vector{host, host, host, disk}));
}

TEST(PrefixPlan, CountsAReplicatedPoolOnce) {
  auto mla = pool_spec{"mla", 64};
  mla.replicated = true;
  EXPECT_EQ(plan(with_pools({mla}, 8), 3, {answer(host, "110")}).found_chunks, 2u);
  EXPECT_EQ(plan(with_pools({kv, mla}, 2), 2, {answer(host, "111110")}).found_chunks, 1u);
  EXPECT_EQ(plan(with_pools({kv, mla}, 2), 2, {answer(host, "111110")}).missing, (prefix_object{1, 1, 0}));
  EXPECT_EQ(plan(with_pools({kv, mla}, 2), 2, {answer(host, "111101")}).missing, (prefix_object{1, 0, 1}));
  EXPECT_EQ(plan(with_pools({kv, mla}, 2), 2, {answer(host, "111111")}).missing, std::nullopt);
}

TEST(PrefixPlan, NeedsOnlyTheLastStateOfATrailingPool) {
  auto spec = with_pools({kv, trailing(1)}); // kv, state of each chunk
  EXPECT_EQ(plan(spec, 3, {answer(host, "101011")}).found_chunks, 3u);
  EXPECT_EQ(plan(spec, 3, {answer(host, "101110")}).found_chunks, 2u); // downward to the last state
  EXPECT_EQ(plan(spec, 3, {answer(host, "101010")}).found_chunks, 0u);
}

TEST(PrefixPlan, NeedsTheWholeWindowOfATrailingPool) {
  auto spec = with_pools({kv, trailing(2)});
  EXPECT_EQ(plan(spec, 4, {answer(host, "10111110")}).found_chunks, 3u);
  EXPECT_EQ(plan(spec, 4, {answer(host, "11101110")}).found_chunks,
            1u); // a window ends at the prompt's begin
}

TEST(PrefixPlan, ReportsTheTierOfRequiredObjectsOnly) {
  auto spec = with_pools({kv, trailing(1)});
  auto p = plan(spec, 2, {answer(host, "1010"), answer(remote, "0101")});
  EXPECT_EQ(p.chunk_tiers, (std::vector{host, remote})); // the remote state of the first chunk is not needed
  auto states = plan(with_pools({trailing(1)}), 2, {answer(host, "01")});
  EXPECT_EQ(states.chunk_tiers, (std::vector{none, host}));
}

TEST(PrefixPlan, LeavesTheLastTokenToTheEngine) {
  auto all = std::vector{answer(host, "11")};
  auto whole = plan(with_pools({kv}), 2, all, 128);
  EXPECT_EQ(whole.found_tokens, 128u);
  EXPECT_EQ(whole.usable_tokens, 127u);
  EXPECT_EQ(whole.usable_chunks, 2u); // both are loaded
  EXPECT_EQ(plan(with_pools({kv}), 2, all, 129).usable_tokens, 128u);
}

TEST(PrefixPlan, TakesNoStateBackByOneToken) {
  auto spec = with_pools({kv, trailing(1)});
  auto p = plan(spec, 3, {answer(host, "111011")}, 192);
  EXPECT_EQ(p.found_tokens, 192u);
  EXPECT_EQ(p.usable_chunks, 1u); // the second chunk has no state
  EXPECT_EQ(p.usable_tokens, 64u);
  EXPECT_EQ(plan(spec, 1, {answer(host, "11")}, 64).usable_tokens, 0u);
}

TEST(PrefixPlan, CountsFromTheParentOfARequest) {
  auto p = make_prefix_plan(with_pools({kv}), {2, 640, 768}, {answer(host, "11")});
  EXPECT_EQ(p.found_tokens, 128u);
  EXPECT_EQ(p.usable_tokens, 127u);
}

/// Counts the steps of a plan.
size_t steps_of(prefix_planner& planner) {
  size_t count = 1;
  while (planner.step())
    ++count;
  return count;
}

TEST(PrefixPlan, OfManyObjectsIsMadeInSteps) {
  constexpr uint32_t chunks = 16'384;
  auto spec = with_pools({kv, trailing(1)}, 32); // a million objects
  std::string has(size_t{chunks} * 64, '1');
  has[size_t{chunks} * 64 - 1] = '0'; // the last state is missing
  prefix_planner planner(spec, {chunks, 0, 1'000'000'000}, {answer(host, has)});
  size_t step_count = has.size() / prefix_planner::step_objects;
  size_t count = steps_of(planner);
  EXPECT_GE(count, 2 * step_count - 2) << "to merge, and to find the tiers";
  EXPECT_LE(count, 2 * step_count + 2);
  EXPECT_EQ(planner.plan().found_chunks, chunks - 1);
  EXPECT_EQ(planner.plan().missing, (prefix_object{chunks - 1, 1, 31}));
  EXPECT_EQ(planner.plan().chunk_tiers, std::vector(chunks - 1, host));
}

TEST(PrefixPlan, AStateThatIsFarAwayIsSearchedInSteps) {
  constexpr uint32_t chunks = 65'536;
  auto spec = with_pools({kv, trailing(1)});
  std::string has = "11";
  for (uint32_t i = 1; i < chunks; ++i)
    has += "10";
  prefix_planner planner(spec, {chunks, 0, 1'000'000'000}, {answer(host, has)});
  EXPECT_GE(steps_of(planner), 11U) << "eight to merge, and four to find the state";
  EXPECT_EQ(planner.plan().found_chunks, 1u);
}

TEST(PrefixPlan, IsCutToFewerChunks) {
  auto spec = with_pools({kv, trailing(1)});
  prefix_planner planner(spec, {6, 0, 1'000'000},
                         {answer(host, "111011111010"), answer(disk, "000000000010")});
  EXPECT_EQ(steps_of(planner), 1U);
  EXPECT_EQ(planner.plan().found_chunks, 4u);
  planner.cut(3);
  EXPECT_EQ(steps_of(planner), 1U);
  EXPECT_EQ(planner.plan().found_chunks, 3u);
  EXPECT_EQ(planner.plan().missing, std::nullopt) << "it was cut where all is present";
  EXPECT_EQ(planner.plan().requested_chunks, 6u);
  planner.cut(2);
  while (planner.step())
    ;
  EXPECT_EQ(planner.plan().found_chunks, 1u) << "the second state is missing";
  EXPECT_EQ(planner.plan().missing, (prefix_object{1, 1, 0}));
  EXPECT_EQ(planner.plan().chunk_tiers, std::vector{host});
  planner.cut(0);
  while (planner.step())
    ;
  EXPECT_EQ(planner.plan().found_chunks, 0u);
  EXPECT_EQ(planner.plan().usable_tokens, 0u);
}

TEST(PrefixPlan, UsesNothingOfAPromptOfOneToken) {
  auto spec = with_pools({kv});
  spec.chunk_tokens = spec.hash_block_tokens = 1;
  auto p = plan(spec, 1, {answer(host, "1")}, 1);
  EXPECT_EQ(p.found_tokens, 1u);
  EXPECT_EQ(p.usable_tokens, 0u);
  EXPECT_EQ(p.usable_chunks, 0u);
}

TEST(PrefixPlan, AgreesWithTryingEveryLength) {
  uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2'000; ++round) {
    auto replicated = pool_spec{"mla", 64};
    replicated.replicated = random() % 2 == 0;
    auto spec = with_pools({kv, replicated, trailing(1 + random() % 3)}, 1 + random() % 3);
    chunk_layout layout(spec);
    uint32_t chunks = random() % 8;
    std::vector<tier_answer> answers;
    for (auto tier : {disk, host}) {
      answers.push_back({tier, object_bitmap(chunks * layout.objects_per_chunk())});
      for (size_t i = 0; i < answers.back().present.size(); ++i)
        if (random() % 4 != 0)
          answers.back().present.set(i);
    }
    auto tier_of = [&](size_t object) {
      return answers[1].present.test(object) ? host : answers[0].present.test(object) ? disk : none;
    };
    auto holds = [&](uint32_t length) {
      for (uint32_t c = 0; c < length; ++c)
        for (uint32_t o = 0; o < layout.objects_per_chunk(); ++o)
          if (needs(spec.pools[layout.pool_of(o)], length, c) &&
              tier_of(c * layout.objects_per_chunk() + o) == none)
            return false;
      return true;
    };
    uint32_t found = 0, shorter = 0;
    for (uint32_t length = 1; length <= chunks; ++length)
      if (holds(length))
        shorter = found, found = length;
    bool to_the_end = random() % 2 == 0;
    auto p = plan(spec, chunks, answers, uint64_t{chunks} * 64 + (to_the_end ? 0 : 1));
    ASSERT_EQ(p.found_chunks, found);
    ASSERT_EQ(p.usable_chunks, found == chunks && to_the_end ? shorter : found);
    for (uint32_t o = 0; o < p.object_tiers.size(); ++o)
      ASSERT_EQ(p.object_tiers[o], tier_of(o));
  }
}

TEST(PrefixPlan, CountsItsChunksByTier) {
  prefix_plan plan;
  EXPECT_EQ(chunks_by_tier(plan), (std::array<uint64_t, tier_kinds>{}));
  plan.chunk_tiers = {host, host, disk, none, host};
  EXPECT_EQ(chunks_by_tier(plan), (std::array<uint64_t, tier_kinds>{0, 3, 1, 0}));
}

TEST(ChunkLayout, NumbersObjectsPoolByPoolAndRankByRank) {
  auto mla = pool_spec{"mla", 64};
  mla.replicated = true;
  chunk_layout layout(with_pools({kv, mla, trailing(1)}, 4));
  EXPECT_EQ(layout.objects_per_chunk(), 9u);
  EXPECT_EQ(layout.object_of(0, 3), 3u);
  EXPECT_EQ(layout.object_of(1, 3), 4u);
  EXPECT_EQ(layout.object_of(2, 3), 8u);
  digest d = digest::from(std::vector<uint8_t>{1, 2, 3});
  EXPECT_EQ(layout.key(space_id{5}, d, 8), (object_key{space_id{5}, 2, 3, d}));
  EXPECT_EQ(layout.key(space_id{5}, d, 4), (object_key{space_id{5}, 1, 0, d}));
}

TEST(PrefixPlan, ATailIsTheLastChunkAndHasItsOwnTokens) {
  plan_request asked{3, 0, 1'000, 10};
  auto spec = with_pools({kv, trailing(1)});
  auto p = make_prefix_plan(spec, asked, {answer(host, "101011")});
  EXPECT_EQ(p.found_chunks, 3u);
  EXPECT_EQ(p.found_tokens, 138u);
  EXPECT_EQ(p.usable_tokens, 138u);
  EXPECT_EQ(p.tail_tokens, 10u);
  p = make_prefix_plan(spec, asked, {answer(host, "111110")});
  EXPECT_EQ(p.found_tokens, 128u) << "without its state";
  EXPECT_EQ(p.tail_tokens, 0u);
  asked.prompt_tokens = 138;
  p = make_prefix_plan(spec, asked, {answer(host, "101111")});
  EXPECT_EQ(p.found_tokens, 138u);
  EXPECT_EQ(p.usable_tokens, 128u) << "the last token is computed again, from the state before";
  p = make_prefix_plan(with_pools({kv}), asked, {answer(host, "111")});
  EXPECT_EQ(p.usable_tokens, 137u);
  asked.logits = true;
  p = make_prefix_plan(spec, asked, {answer(host, "101011")});
  EXPECT_EQ(p.usable_tokens, 138u) << "nothing is computed";
  EXPECT_EQ(p.usable_chunks, 3u);
}

} // namespace
} // namespace terrace::test
