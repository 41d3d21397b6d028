// What a round of eviction costs in messages between an allocator and its tier, which this test plays.
#include "actors/tier/tier_actor.hpp"

#include "objects.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tier/space/eviction_round.hpp"

#include <optional>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

constexpr uint64_t page = 4096;

/// Counts what comes, and answers a round with the objects that its policy would name: the extents from the arena's begin on.
struct played_tier {
  std::shared_ptr<eviction_round> round;
  size_t requests = 0;
};

caf::behavior play(const std::shared_ptr<played_tier>& tier) {
  return {
      [tier](const room_request& request) {
        ++tier->requests;
        tier->round = request.round;
      },
  };
}

struct AllocatorActor : terrace::test::actor_fixture {
  std::shared_ptr<played_tier> tier = std::make_shared<played_tier>();
  residency objects{tier_kind::host};
  allocator_actor space;
  size_t sent = 0; ///< to the allocator, but for requests for space

  AllocatorActor() {
    auto player = sys.spawn([tier = tier] { return play(tier); });
    allocator_arguments arguments;
    arguments.space = make_allocator("free_list", {.capacity_bytes = 64 * page}).value();
    arguments.tier = caf::actor_cast<tier_actor>(player);
    arguments.probe = std::make_shared<metrics::tier_probe>();
    space = spawn_allocator(sys, std::move(arguments));
    auto all = ask(64);
    settle();
    acquire_request request;
    request.objects = chain(0, 64);
    auto taken = objects.acquire(request, objects.missing(request), (*all)->extents);
    objects.publish(taken.places, false);
  }
  void TearDown() override {
    caf::anon_send_exit(caf::actor_cast<caf::actor>(space), caf::exit_reason::user_shutdown);
    tier->round = nullptr;
    settle();
    space = nullptr;
  }

  std::shared_ptr<std::optional<allocate_answer>> ask(size_t extents) {
    auto answer = std::make_shared<std::optional<allocate_answer>>();
    sys.spawn([this, answer, extents](caf::event_based_actor* self) {
      self->request(space, caf::infinite, allocate_request{std::vector<uint64_t>(extents, page)})
          .then([answer](const allocate_answer& value) { *answer = value; });
    });
    return answer;
  }

  /// One turn of the tier: as many victims are named, from `first` on.
  void answer_round(uint64_t first, uint64_t count = 16) {
    auto round = std::exchange(tier->round, nullptr);
    ASSERT_TRUE(round);
    (void) round->question(tier_kind::host);
    victim_answer named;
    for (uint64_t number = first; number < first + count; ++number) {
      named.victims.push_back(to_entry_key(key_of(number)));
      named.above.emplace_back();
      named.bytes += page;
    }
    round->offer(std::move(named));
    round->choose(objects);
    if (round->now() == eviction_round::stage::evicting)
      round->evict(objects);
    ++sent;
    caf::anon_send(space, room_made{std::move(round)});
  }
};

} // namespace

TEST_F(AllocatorActor, ARoundIsOneQuestionAndOneAnswer) {
  auto answer = ask(1);
  settle();
  EXPECT_FALSE(*answer);
  answer_round(0);
  settle();
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->failure.code, errc::ok);
  EXPECT_EQ(tier->requests, 1u);
  EXPECT_EQ(sent, 1u);
  EXPECT_EQ(objects.departures().evictions, 1u) << "sixteen are named, and one is needed";
}

TEST_F(AllocatorActor, FourThatWaitTogetherCostOneRound) {
  std::vector<std::shared_ptr<std::optional<allocate_answer>>> answers;
  for (int i = 0; i < 5; ++i) // the first begins a round; the others are a sixteenth of the arena
    answers.push_back(ask(1));
  settle();
  answer_round(0);
  settle();
  answer_round(16);
  settle();
  for (const auto& answer : answers)
    EXPECT_TRUE(*answer);
  EXPECT_EQ(tier->requests, 2u);
  EXPECT_EQ(sent, 2u);
  EXPECT_EQ(objects.departures().evictions, 5u);
}

TEST_F(AllocatorActor, AfterAFailedRoundItAsksAgainWhenSomethingIsEvictable) {
  auto answer = ask(1);
  settle();
  answer_round(0, 0);
  settle();
  EXPECT_EQ(tier->requests, 1u);
  caf::anon_send(space, evictable_notice{});
  settle();
  EXPECT_EQ(tier->requests, 2u);
  answer_round(0);
  settle();
  EXPECT_TRUE(*answer);
}
