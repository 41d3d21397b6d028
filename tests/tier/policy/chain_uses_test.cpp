#include "tier/policy/group_policies.hpp"

#include "tests/tier/objects.hpp"

#include <gtest/gtest.h>

using namespace terrace;
using namespace terrace::test;

namespace {

constexpr size_t objects = 3 * chain_uses::step_objects + 17;

struct ChainUses : ::testing::TestWithParam<const char*> {
  eviction_tracker at_once, in_steps;

  void SetUp() override {
    for (eviction_tracker* one : {&at_once, &in_steps}) {
      ASSERT_TRUE(one->set_policy(0, GetParam()));
      insert(*one, 100'000, 5); // another chain
      insert(*one, 0, objects / 2);
    }
  }
  static void insert(eviction_tracker& into, uint64_t first, size_t count) {
    auto batch = chain(first, count);
    for (size_t i = 0; i < count; ++i)
      into.insert(0, {to_entry_key(batch->keys[i]), i == 0 ? entry_key{} : batch->parents[i], 1}, 1);
  }
  static std::vector<entry_key> order(eviction_tracker& tracker) {
    std::vector<entry_key> names;
    for (const victim& each : tracker.victims(0, {UINT64_MAX, 0}, 1'000'000'000))
      names.push_back(each.key);
    return names;
  }
};

} // namespace

TEST_P(ChainUses, StepsRecordWhatOneCallRecords) {
  chain_uses whole(SIZE_MAX), parts;
  EXPECT_NE(whole.begin(at_once, chain(0, objects), {.turn = 2}, 500'000'000), 0u);
  EXPECT_TRUE(whole.idle());
  EXPECT_NE(parts.begin(in_steps, chain(0, objects), {.turn = 2}, 500'000'000), 0u);
  EXPECT_FALSE(parts.idle());
  size_t steps = 1;
  while (parts.step(in_steps, 500'000'000))
    ++steps;
  EXPECT_EQ(steps, 3 * 4u) << "names, what is known, accesses";
  EXPECT_TRUE(parts.idle());
  EXPECT_EQ(order(in_steps), order(at_once));
  EXPECT_EQ(in_steps.tracked(), at_once.tracked());
}

TEST_P(ChainUses, OtherEventsMayComeBetweenSteps) {
  chain_uses parts;
  auto batch = chain(0, objects);
  auto number = parts.begin(in_steps, batch, {}, 500'000'000);
  uint64_t now = 500'000'000;
  size_t i = 0;
  while (parts.step(in_steps, now += 1'000'000)) {
    in_steps.erase(0, to_entry_key(batch->keys[objects / 2 - 1 - i]));
    insert(in_steps, 200'000 + 10 * i++, 3);
    std::vector<entry_key> other{to_entry_key(key_of(100'000))};
    in_steps.begin_request(other, {}, now += 1'000'000);
  }
  in_steps.end_request(number, {}, now);
  EXPECT_TRUE(parts.idle());
  EXPECT_EQ(in_steps.residents(0), 5 + objects / 2 - i + 3 * i);
  EXPECT_EQ(order(in_steps).size(), in_steps.residents(0));
}

TEST_P(ChainUses, ChainsAreRecordedOneAfterTheOther) {
  chain_uses parts;
  auto first = parts.begin(in_steps, chain(0, objects), {}, 500'000'000);
  auto second = parts.begin(in_steps, chain(0, objects), {}, 500'000'000);
  EXPECT_NE(first, second);
  while (parts.step(in_steps, 500'000'000)) {
  }
  EXPECT_TRUE(parts.idle());
  EXPECT_EQ(order(in_steps).size(), in_steps.residents(0));
}

TEST_P(ChainUses, ARequestSparesAllPartsOfItsChain) {
  chain_uses parts;
  uint64_t now = 500'000'000;
  auto number = parts.begin(in_steps, chain(0, objects / 2), {}, now);
  while (parts.step(in_steps, now += 100'000'000)) {
  }
  auto named = in_steps.victims(0, {1, number}, now);
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named.front().key, to_entry_key(key_of(100'004))) << "the last one of the other chain";
}

TEST_P(ChainUses, WhileMuchWaitsOnlyTheBeginningOfALongChainIsRecorded) {
  chain_uses parts;
  auto batch = chain(0, objects);
  size_t begun = 0;
  for (size_t waiting = 0; waiting < chain_uses::waiting_objects_max; waiting += objects, ++begun)
    parts.begin(in_steps, batch, {}, 500'000'000);
  size_t before = in_steps.tracked();
  EXPECT_NE(parts.begin(in_steps, chain(500'000, objects), {}, 500'000'000), 0u);
  EXPECT_LE(in_steps.tracked(), before + chain_uses::step_objects);
  size_t steps = 1;
  while (parts.step(in_steps, 500'000'000))
    ++steps;
  EXPECT_EQ(steps, begun * 3 * 4u);
}

INSTANTIATE_TEST_SUITE_P(Policies, ChainUses, ::testing::Values("lru", "kmg", "s3fifo", "arc"));
