// States of which only the last of a prefix are needed, beside attention that needs every chunk.
#include "pool_client.hpp"

namespace terrace::e2e {
namespace {

/// Attention in objects of 256 KiB, and one state per chunk, of which the last `trailing` are needed.
client::space_spec hybrid_space(uint32_t trailing, uint64_t state_bytes = 64 << 10) {
  auto spec = test_space();
  spec.pools = {{.name = "kv", .object_bytes = 256 << 10},
                {.name = "state",
                 .object_bytes = state_bytes,
                 .rule = client::hit_rule::trailing_chunks,
                 .trailing = trailing}};
  return spec;
}

TEST(TrailingPools, TheFoundPrefixIsTheLongestAtWhichEveryRuleHolds) {
  daemon_under_test daemon;
  pool_client client(daemon.socket(), hybrid_space(2));
  auto chain = chain_of(1, 8);
  ASSERT_TRUE(client.store(chain, {0, 8}, {0}));
  EXPECT_EQ((*client).lookup(chain).found_chunks, 0U) << "no state at all";
  ASSERT_TRUE(client.store(chain, {0, 1}, {1}));
  EXPECT_EQ((*client).lookup(chain).found_chunks, 1U) << "a window reaches back to the root at most";
  ASSERT_TRUE(client.store(chain, {3, 2}, {1}));
  EXPECT_EQ((*client).lookup(chain).found_chunks, 5U) << "states 3 and 4, though 1 and 2 are missing";
  ASSERT_TRUE(client.store(chain, {6, 2}, {1}));
  EXPECT_EQ((*client).lookup(chain).found_chunks, 8U);
  auto more = chain_of(1, 9);
  ASSERT_EQ(more[7], chain[7]);
  ASSERT_TRUE(client.store(more, {8, 1}, {1}));
  EXPECT_EQ((*client).lookup(more).found_chunks, 8U) << "a state without its chunk";
  EXPECT_EQ(client.load_and_check(chain, {0, 8}, {0}), 8U);
  EXPECT_EQ(client.load_and_check(chain, {6, 2}, {1}), 2U);
}

TEST(TrailingPools, ALeaseHoldsTheWindowAndNoOtherState) {
  daemon_under_test daemon;
  pool_client client(daemon.socket(), hybrid_space(2));
  auto chain = chain_of(1, 8);
  ASSERT_TRUE(client.store(chain, {0, 8}, {0, 1}));
  auto found = (*client).lookup(chain, true);
  ASSERT_EQ(found.found_chunks, 8U);
  EXPECT_EQ((*client).tier("host").leased_objects, 8U + 2U);
  std::vector<uint8_t> state{1};
  auto window = client->read_lease(found.held.id(), {6, 2}, patiently(), state);
  ASSERT_TRUE(window) << window.error().text;
  EXPECT_TRUE(has_content(content_of(chain[7], 1), window->objects[1]));
  found.held.release();
  EXPECT_EQ(leased_objects(*client, 0), 0U);
}

void use_in_inference(pool_client& client, const std::vector<digest>& chain, uint64_t inference) {
  auto request = (*client).lookup_of(chain, true);
  request.options.inference = inference;
  ASSERT_EQ(client->lookup(request, patiently())->found_chunks, chain.size());
}

/// Stores chunks that take room from others. With `use` it also uses them, so that they are worth as much.
void press(pool_client& client, uint64_t seed, uint64_t objects, bool use = false) {
  for (uint64_t i = 0; i < objects; ++i) {
    auto chain = chain_of(seed + i, 1);
    ASSERT_TRUE(client.store(chain, {0, 1}, {0}));
    if (!use)
      continue;
    // The state is missing, so nothing is found, but it is asked for.
    auto request = (*client).lookup_of(chain, true);
    request.options.inference = seed + i;
    ASSERT_TRUE(client->lookup(request, patiently()));
  }
}

/// A chain of 7 chunks whose states are as large as the other objects, so that each may take the place of
/// any: 14 of the 15 objects that the daemon has room for.
struct FullOfStates : ::testing::TestWithParam<std::string> {
  FullOfStates() { EXPECT_TRUE(client.store(chain, {0, 7}, {0, 1})); }

  /// Two objects leave, and they are the two oldest states.
  void expect_old_states_leave_first(bool others_are_used = false) {
    press(client, 100, 3, others_are_used);
    EXPECT_EQ((*client).tier("host").evictions, 2U);
    for (uint64_t seed : {100, 101, 102})
      EXPECT_EQ(client.load_and_check(chain_of(seed, 1), {0, 1}, {0}), 1U);
    EXPECT_EQ((*client).lookup(chain).found_chunks, 7U) << "the window and its chunks are still there";
    for (uint32_t i = 0; i < 7; ++i)
      EXPECT_EQ(client.load_and_check(chain, {i, 1}, {1}), i < 2 ? 0U : 1U) << "state " << i;
  }

  daemon_under_test daemon{
      daemon_options{.host_bytes = 4 * mebibyte, .host = "policy = \"" + GetParam() + "\"\n"}};
  pool_client client{daemon.socket(), hybrid_space(1, 256 << 10)};
  std::vector<digest> chain = chain_of(1, 7);
};

TEST_P(FullOfStates, ThoseThatNoWindowNeedsLeaveFirst) { expect_old_states_leave_first(); }

TEST_P(FullOfStates, AlsoAfterAUse) {
  ASSERT_EQ((*client).lookup(chain, true).found_chunks, 7U);
  expect_old_states_leave_first();
}

TEST_P(FullOfStates, AlsoAfterTheUseOfAnInference) {
  use_in_inference(client, chain, 77);
  expect_old_states_leave_first(true);
}

struct UsedStates : FullOfStates {};

TEST_P(UsedStates, ThatOfAPrefixStays) {
  auto beginning = std::vector<digest>(chain.begin(), chain.begin() + 1);
  ASSERT_EQ((*client).lookup(beginning, true).found_chunks,
            1U); // another conversation begins as this one did
  press(client, 100, 3);
  EXPECT_EQ((*client).lookup(beginning).found_chunks, 1U);
  EXPECT_EQ(client.load_and_check(chain, {1, 1}, {1}), 0U);
  EXPECT_EQ(client.load_and_check(chain, {2, 1}, {1}), 0U);
}

/// The other policies: tests/tier/policy/access_order_test.cpp.
INSTANTIATE_TEST_SUITE_P(Policies, FullOfStates, ::testing::Values("lru", "kmg"),
                         [](const auto& which) { return which.param; });
INSTANTIATE_TEST_SUITE_P(Policies, UsedStates, ::testing::Values("lru", "kmg"),
                         [](const auto& which) { return which.param; });

} // namespace
} // namespace terrace::e2e
