#include "runtime/turns.hpp"

#include "runtime/ask.hpp"
#include "tests/support/actor_fixture.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <string>
#include <vector>

namespace {
struct double_it {
  int number = 0;
};
struct doubled {
  int number = 0;
};
struct note {};
struct begin_asking {};
} // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(double_it)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(doubled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(note)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(begin_asking)

namespace terrace::runtime {
namespace {

using asked_actor = caf::typed_actor<caf::replies_to<double_it>::with<doubled>>;
using turning_actor = caf::typed_actor<caf::reacts_to<note>, caf::reacts_to<begin_asking>,
                                       caf::replies_to<double_it>::with<doubled>>;

struct asking_state {
  const char* name = "asking";
  task<> asking;
};
using self_pointer = caf::stateful_actor<asking_state, turns<turning_actor::base>>*;
using steps = std::vector<std::string>;

task<> ask_twice(self_pointer self, asked_actor other, steps* seen) {
  double_it number{1};
  auto first = co_await ask<doubled>(self, other, number, "other");
  seen->push_back(first ? "first" : "lost");
  auto second = co_await ask<doubled>(self, other, number, "other");
  seen->push_back(second ? "second" : "lost");
}

struct Turns : terrace::test::actor_fixture {
  steps seen;

  void TearDown() override { shut_down(); }

  asked_actor spawn_asked() {
    return sys.spawn([]() -> asked_actor::behavior_type {
      return {[](const double_it& asked) { return doubled{2 * asked.number}; }};
    });
  }
  turning_actor spawn_turning(asked_actor other) {
    auto behavior = [this, other](self_pointer self) -> turning_actor::behavior_type {
      self->each_turn([this] { seen.push_back("begin"); }, [this] { seen.push_back("end"); });
      return self->in_turns([this](note) { seen.push_back("note"); },
                            [this, self, other](const begin_asking&) {
                              self->state.asking = ask_twice(self, other, &seen);
                              self->state.asking.start();
                            },
                            [](const double_it& asked) { return doubled{2 * asked.number}; });
    };
    return sys.spawn(behavior);
  }
};

TEST_F(Turns, BeginAndEndWithEachMessage) {
  auto actor = spawn_turning(spawn_asked());
  settle();
  EXPECT_EQ(seen, (steps{"end"})) << "the start of the actor";
  caf::anon_send(actor, note{});
  settle();
  EXPECT_EQ(seen, (steps{"end", "begin", "note", "end"}));
}

TEST_F(Turns, EndBeforeTheirAnswerIsSent) {
  auto actor = spawn_turning(spawn_asked());
  settle();
  seen.clear();
  caf::scoped_actor me(sys);
  me->send(actor, double_it{21});
  settle();
  EXPECT_EQ(seen, (steps{"begin", "end"}));
}

TEST_F(Turns, CoroutinesContinueInATurnOfTheirOwn) {
  auto actor = spawn_turning(spawn_asked());
  settle();
  seen.clear();
  caf::anon_send(actor, begin_asking{});
  settle();
  EXPECT_EQ(seen, (steps{"begin", "end", "begin", "first", "end", "begin", "second", "end"}));
}

TEST_F(Turns, AnActorThatEndsBeforeItAnswersIsATurnToo) {
  auto other = spawn_asked();
  auto actor = spawn_turning(other);
  settle();
  caf::anon_send_exit(other, caf::exit_reason::user_shutdown);
  settle();
  seen.clear();
  caf::anon_send(actor, begin_asking{});
  settle();
  EXPECT_EQ(seen, (steps{"begin", "end", "begin", "lost", "end", "begin", "lost", "end"}));
}

} // namespace
} // namespace terrace::runtime
