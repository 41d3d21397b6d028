#include "index/known_prefix.hpp"

#include <gtest/gtest.h>

#include <random>

namespace terrace {
namespace {

space_spec two_ranks() {
  space_spec spec;
  spec.chunk_tokens = 16;
  spec.world_size = 2;
  spec.pools.assign(1, {});
  return spec;
}

TEST(KnownPrefix, IsAllOfItUntilSomethingHasLeft) {
  known_prefix what{10, {5, 2}};
  EXPECT_EQ(still_known(what, {5, 2}, 0), 10u);
  EXPECT_EQ(still_known(what, {6, 2}, 0), 0u);
}

TEST(KnownPrefix, IsWhatIsHeldUntilSomethingHeldHasLeft) {
  known_prefix what{10, {5, 2}};
  EXPECT_EQ(still_known(what, {6, 2}, 4), 4u);
  EXPECT_EQ(still_known(what, {6, 2}, 12), 10u) << "what was held but not found is not known";
  EXPECT_EQ(still_known(what, {7, 3}, 4), 0u);
}

TEST(KnownPrefix, EndsAtTheFirstChunkThatIsElsewhere) {
  prefix_plan plan;
  EXPECT_EQ(leading_host_chunks(plan), 0u);
  plan.chunk_tiers = {tier_kind::host, tier_kind::host, tier_kind::disk, tier_kind::host};
  EXPECT_EQ(leading_host_chunks(plan), 2u);
}

object_bitmap behind(const object_bitmap& all, size_t first) {
  object_bitmap rest(all.size() - first);
  for (size_t i = first; i < all.size(); ++i)
    if (all.test(i))
      rest.set(i - first);
  return rest;
}

TEST(KnownPrefix, ThePlanOfTheRestBecomesThatOfAll) {
  std::mt19937 random(7);
  space_spec spec = two_ranks();
  size_t per_chunk = chunk_layout(spec).objects_per_chunk();
  for (int round = 0; round < 2000; ++round) {
    uint32_t chunks = 2 + random() % 20, known = 1 + random() % (chunks - 1);
    object_bitmap host(chunks * per_chunk), disk(chunks * per_chunk);
    for (size_t i = 0; i < host.size(); ++i) {
      if (i < known * per_chunk || random() % 8 != 0)
        (i < known * per_chunk || random() % 2 == 0 ? host : disk).set(i);
      if (random() % 4 == 0)
        disk.set(i);
    }
    plan_request request{chunks, 0, chunks * spec.chunk_tokens, 0};
    if (random() % 3 == 0)
      request.prompt_tokens += 1 + random() % 40; // the prompt goes on
    else if (random() % 2 == 0)
      request.prompt_tokens -=
          spec.chunk_tokens - (request.tail_tokens = 1 + random() % (spec.chunk_tokens - 1));
    auto expected = make_prefix_plan(spec, request, {{tier_kind::host, host}, {tier_kind::disk, disk}});
    plan_request rest = request;
    rest.chunks -= known;
    rest.first_token = known * spec.chunk_tokens;
    auto plan = make_prefix_plan(spec, rest,
                                 {{tier_kind::host, behind(host, known * per_chunk)},
                                  {tier_kind::disk, behind(disk, known * per_chunk)}});
    plan.object_tiers = {};
    auto made = behind_known(std::move(plan), known, spec.chunk_tokens);
    ASSERT_EQ(made.requested_chunks, expected.requested_chunks);
    ASSERT_EQ(made.found_chunks, expected.found_chunks);
    ASSERT_EQ(made.found_tokens, expected.found_tokens);
    ASSERT_EQ(made.usable_chunks, expected.usable_chunks);
    ASSERT_EQ(made.usable_tokens, expected.usable_tokens);
    ASSERT_EQ(made.tail_tokens, expected.tail_tokens);
    ASSERT_EQ(made.first_token, expected.first_token);
    ASSERT_EQ(made.missing, expected.missing);
    ASSERT_EQ(made.chunk_tiers, expected.chunk_tiers);
  }
}

} // namespace
} // namespace terrace
