// A tier beside a policy that gives its marks back when the test says so.
#include "actors/tier/tier_actor.hpp"

#include "objects.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tier/objects/tier_changes.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

/// What a slow policy has been told, and the marks that it owes.
struct policy_seen {
  size_t batches = 0;
  size_t beyond_credit = 0; ///< of them, since the last check
  std::vector<std::pair<note_kind, entry_key>> notes;
  size_t notes_before_question = 0;
  size_t questions = 0;
  std::vector<caf::response_promise> marks;
  size_t of_checks = 0; ///< batches: in builds whose tiers check themselves, a check is told what is kept
  bool thinks = false;  ///< victims are not named before the test says so
  std::vector<caf::response_promise> victims;
};

caf::behavior slow_policy(caf::event_based_actor* self, const std::shared_ptr<policy_seen>& seen) {
  return {
      [seen](const policy_notes& notes) {
        ++seen->batches;
        seen->beyond_credit += seen->marks.size() == note_queue::marks_max ? 1 : 0;
        for (const policy_note& note : notes.notes)
          seen->notes.emplace_back(note.kind, note.key);
      },
      [seen](const check_policy_request&) {
        seen->of_checks += std::exchange(seen->beyond_credit, 0);
        return check_answer_texts{};
      },
      [self, seen](notes_mark) {
        seen->marks.push_back(self->make_response_promise());
        return seen->marks.back();
      },
      [seen](int) { // by the actor itself: a promise is answered where it was made
        auto mark = seen->marks.front();
        seen->marks.erase(seen->marks.begin());
        mark.deliver(notes_mark{});
      },
      [seen, self](const victim_request&) -> caf::result<victim_answer> {
        ++seen->questions;
        seen->notes_before_question = seen->notes.size();
        if (!seen->thinks)
          return victim_answer{};
        seen->victims.push_back(self->make_response_promise());
        return seen->victims.back();
      },
      [seen](bool) { // it names the last object
        auto question = seen->victims.front();
        seen->victims.erase(seen->victims.begin());
        question.deliver(victim_answer{{}, {to_entry_key(key_of(3))}, {}, 2 * 4096});
      },
  };
}

struct TierActor : terrace::test::actor_fixture {
  static constexpr size_t credit = note_queue::batches_between_marks * note_queue::marks_max;
  std::shared_ptr<policy_seen> seen = std::make_shared<policy_seen>();
  caf::actor policy = sys.spawn(slow_policy, seen);
  std::shared_ptr<metrics::tier_probe> probe = std::make_shared<metrics::tier_probe>();
  tier_actor tier;

  TierActor() {
    tier_arguments arguments;
    arguments.config.kind = tier_kind::host;
    arguments.start.space =
        *make_allocator("free_list", {.capacity_bytes = 1 << 20, .alignment_bytes = 4096});
    arguments.policy = caf::actor_cast<policy_actor>(policy);
    arguments.probe = probe;
    tier = spawn_tier(sys, std::move(arguments));
    sys.spawn([this](caf::event_based_actor* self) {
      acquire_request wanted;
      wanted.objects = chain(0, 4);
      self->request(tier, caf::infinite, wanted).then([this, self](const acquire_answer& got) {
        self->send(tier, publish_request{got.places, false, 0});
      });
      return caf::behavior{[](const publish_answer&) {}};
    });
    settle();
  }
  void TearDown() override {
    seen->marks.clear();
    seen->victims.clear();
    stop(tier);
    tier = tier_actor{};
    stop(policy);
    policy = {};
  }
  void use(uint64_t number) {
    caf::anon_send(tier, probe_request{chain(number, 1), false, true});
    settle();
  }
  void give_a_mark_back() {
    ASSERT_FALSE(seen->marks.empty());
    caf::anon_send(policy, 1);
    settle();
  }
};

} // namespace

TEST_F(TierActor, TellsItsPolicyOfEveryUseWhileThatKeepsUp) {
  for (size_t i = 0; i < 3 * credit; ++i) {
    use(i % 4);
    if (!seen->marks.empty())
      give_a_mark_back();
  }
  EXPECT_EQ(seen->notes.size(), 4 + 3 * credit) << "four arrivals, and each use";
}

TEST_F(TierActor, KeepsItsNewsFromAPolicyThatIsBehind) {
  for (size_t i = 0; i < 3 * credit; ++i)
    use(i % 4);
  EXPECT_EQ(seen->batches - seen->of_checks, credit);
  EXPECT_EQ(seen->marks.size(), note_queue::marks_max);
}

TEST_F(TierActor, TellsWhatItKeptWhenAMarkIsBack) {
  for (size_t i = 0; i < 3 * credit; ++i)
    use(i % 4);
  size_t before = seen->notes.size();
  give_a_mark_back();
  ASSERT_EQ(seen->notes.size(), before + 4) << "one use for each object";
  EXPECT_EQ(seen->notes.back(), (std::pair{note_kind::hit, to_entry_key(key_of(3))}));
  use(0);
  EXPECT_EQ(seen->notes.size(), before + 5) << "and there is credit again";
}

TEST_F(TierActor, AsksForVictimsBehindAllThatHappened) {
  for (size_t i = 0; i < 3 * credit; ++i)
    use(i % 4);
  size_t before = seen->notes.size();
  acquire_request all; // more than what is free
  all.objects = chain(100, 126);
  caf::anon_send(tier, all);
  settle();
  EXPECT_EQ(seen->questions, 1u);
  EXPECT_EQ(seen->notes_before_question, before + 4);
}

TEST_F(TierActor, CountsAsDroppedWhatEvictionCouldHaveMadeRoomForAndNothingElse) {
  acquire_request all; // more than what is free
  all.objects = chain(100, 126);
  all.context = std::make_shared<request_context>();
  seen->thinks = true;
  caf::anon_send(tier, all);
  settle();
  ASSERT_EQ(seen->victims.size(), 1u);
  all.context->ended = errc::deadline; // while room is being made
  caf::anon_send(policy, true);
  caf::anon_send(tier, sweep_notice{});
  settle();
  EXPECT_EQ(probe->dropped(), 126u);
  EXPECT_EQ(probe->refused(refusal_reason::no_room), 0u);
  seen->thinks = false;
  all.context = std::make_shared<request_context>();
  all.may_wait = false;
  caf::anon_send(tier, all);
  settle();
  EXPECT_EQ(probe->dropped(), 126u) << "nothing can be evicted";
  EXPECT_EQ(probe->refused(refusal_reason::no_room), 126u);
  all.may_come_again = true;
  caf::anon_send(tier, all);
  settle();
  EXPECT_EQ(probe->refused(refusal_reason::no_room), 126u) << "it comes again for less";
}
