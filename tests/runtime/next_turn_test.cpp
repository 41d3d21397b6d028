// Coroutines let other actors run between turns.
#include "runtime/next_turn.hpp"

#include "tests/support/actor_fixture.hpp"

#include <memory>
#include <vector>

namespace {
struct begin_turns {};
struct go_on_notice {};
struct other_notice {};
struct drop_notice {};
} // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(begin_turns)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(go_on_notice)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(other_notice)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(drop_notice)

using namespace terrace;

namespace {

struct turns_state {
  task<> progress;
  turn_wait wait;
};
using turns_actor = caf::stateful_actor<turns_state>*;
using events = std::shared_ptr<std::vector<int>>;

task<> three_turns(turns_actor self, events seen) {
  for (int turn = 1; turn < 3; ++turn) {
    seen->push_back(turn);
    co_await next_turn<go_on_notice>(self, self->state.wait);
  }
  seen->push_back(3);
}

/// Records a 0 for each message from others.
caf::behavior turns_behavior(turns_actor self, events seen) {
  return {
      [self, seen](begin_turns) {
        self->state.progress = three_turns(self, seen);
        self->state.progress.start();
      },
      [self](go_on_notice) { self->state.wait.over(); },
      [seen](other_notice) { seen->push_back(0); },
      [self](drop_notice) { self->state.progress = {}; },
  };
}

struct NextTurn : terrace::test::actor_fixture {
  events seen = std::make_shared<std::vector<int>>();
};

} // namespace

TEST_F(NextTurn, OtherMessagesAreHandledBetween) {
  auto actor = sys.spawn(turns_behavior, seen);
  caf::anon_send(actor, begin_turns{});
  caf::anon_send(actor, other_notice{});
  settle();
  EXPECT_EQ(*seen, (std::vector<int>{1, 0, 2, 3}));
}

TEST_F(NextTurn, WhatWasDroppedIsNotContinued) {
  auto actor = sys.spawn(turns_behavior, seen);
  caf::anon_send(actor, begin_turns{});
  caf::anon_send(actor, drop_notice{});
  caf::anon_send(actor, other_notice{});
  settle();
  EXPECT_EQ(*seen, (std::vector<int>{1, 0}));
}
