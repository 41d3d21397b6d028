#include "actors/tier/policy_actor.hpp"

#include "tests/support/actor_fixture.hpp"
#include "tests/tier/shadow_uses.hpp"

namespace terrace::actors {
namespace {

using test::chunk;
using test::object;
using test::space;
using test::use_of;

struct Shadow : terrace::test::actor_fixture {
  shadow_actor start(std::vector<shadow_plan> plans, clock_source clock = clock_source::steady) {
    shadow_arguments arguments;
    arguments.plans = std::move(plans);
    arguments.shadow_gate = gate;
    arguments.probe = probe;
    for (const shadow_plan& plan : arguments.plans)
      probe->add_line(plan.policy, plan.capacity_bytes);
    arguments.clock = clock;
    arguments.detached = false;
    return spawn_shadow(sys, std::move(arguments));
  }

  void tell(const shadow_actor& to, shadow_use use) {
    ASSERT_TRUE(gate->offer_or_skip(use.prefix->chunks.size()));
    caf::anon_send(to, std::move(use));
    settle();
  }

  shadow_report report(const shadow_actor& of) {
    auto answer = std::make_shared<shadow_report>();
    sys.spawn([answer, of](caf::event_based_actor* self) {
      self->request(of, caf::infinite, shadow_request{}).then([answer](const shadow_report& told) {
        *answer = told;
      });
    });
    settle();
    return *answer;
  }

  std::shared_ptr<credit_gate> gate = std::make_shared<credit_gate>();
  std::shared_ptr<metrics::shadow_probe> probe = std::make_shared<metrics::shadow_probe>();
};

TEST_F(Shadow, TellsForEachPolicyAndCapacityWhatItWouldHaveHit) {
  auto shadow = start({{"lru", 10 * object}, {"lru", object}});
  auto in = space();
  for (int time = 0; time < 2; ++time)
    tell(shadow, use_of(in, {1, 2}));
  auto lines = report(shadow).lines;
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].counts.asked, 4u);
  EXPECT_EQ(lines[0].counts.hits, 2u);
  EXPECT_EQ(lines[0].used_bytes, 2 * object);
  EXPECT_EQ(lines[1].counts.hits, 1u);
  EXPECT_EQ(lines[1].capacity_bytes, object);
  EXPECT_TRUE(gate->offer_or_skip(credit_gate::waiting_max)); // all was heard
}

TEST_F(Shadow, HearsAnInferenceOnceAndItsEnd) {
  auto shadow = start({{"kmg", 10 * object}});
  auto in = space();
  for (int time = 0; time < 2; ++time)
    tell(shadow, use_of(in, {1}, 7));
  EXPECT_EQ(report(shadow).lines[0].counts.asked, 1u);
  inference_end end;
  end.inference = 7;
  end.outcome.output_tokens = 20;
  ASSERT_TRUE(gate->offer_or_skip(1));
  caf::anon_send(shadow, end);
  tell(shadow, use_of(in, {1}, 7)); // the number may be used again
  EXPECT_EQ(report(shadow).lines[0].counts.asked, 2u);
  EXPECT_EQ(report(shadow).lines[0].counts.hits, 1u);
}

TEST_F(Shadow, ForgetsWhatIsCleared) {
  auto shadow = start({{"lru", 10 * object}});
  auto one = space(), other = space({{.name = "kv", .object_bytes = 1 << 20}}, 1, 2);
  tell(shadow, use_of(one, {1, 2}));
  tell(shadow, use_of(other, {1, 2, 3}));
  caf::anon_send(shadow, shadow_clear{space_id{1}});
  settle();
  EXPECT_EQ(report(shadow).lines[0].residents, 3u);
  EXPECT_EQ(report(shadow).lines[0].used_bytes, 3 * object);
  EXPECT_EQ(report(shadow).lines[0].counts.evicted, 0u);
  tell(shadow, use_of(one, {1, 2}));
  EXPECT_EQ(report(shadow).lines[0].counts.hits, 0u);
  tell(shadow, use_of(other, {1, 2, 3}));
  EXPECT_EQ(report(shadow).lines[0].counts.hits, 3u);
  caf::anon_send(shadow, shadow_clear{});
  settle();
  EXPECT_EQ(report(shadow).lines[0].residents, 0u);
  EXPECT_EQ(report(shadow).lines[0].used_bytes, 0u);
}

/// What kmg keeps follows from how long its chunks waited.
TEST_F(Shadow, AgesByTheClockThatTheRealPoliciesGoBy) {
  constexpr uint64_t second = 1'000'000'000, capacity = 40 * object;
  auto shadow = start({{"kmg", capacity}}, clock_source::told);
  auto expected = *shadow_cache::make("kmg", capacity, policy_seed + static_cast<uint64_t>(tier_kind::host));
  auto in = space();
  uint64_t inference = 0;
  auto ask = [&](int chunk, uint64_t at) {
    shadow_use use = use_of(in, {chunk}, ++inference);
    use.told = at;
    expected->begin(entries_of(use), {.space = 1}, at);
    tell(shadow, use);
  };
  // Of 200 chunks in turn, some come back after a second, and others after ten; the next round is a quarter of an hour away.
  for (uint64_t round = 0, at = 0; round < 20; ++round, at += 900 * second)
    for (int chunk = 0; chunk < 200; ++chunk) {
      ask(chunk, at += second / 20);
      if (chunk >= 100 && chunk % 4 == 2)
        ask(chunk - 20, at);
      if (chunk >= 100 && chunk % 4 == 3)
        ask(chunk - 100, at);
    }
  auto line = report(shadow).lines[0];
  EXPECT_EQ(line.counts.hits, expected->counts().hits);
  EXPECT_EQ(line.counts.evicted, expected->counts().evicted);
  EXPECT_GT(line.counts.hits, 100u);
}

} // namespace
} // namespace terrace::actors
