// Coroutines that belong to an actor.
#include "runtime/task.hpp"

#include "runtime/ask.hpp"
#include "tests/support/actor_fixture.hpp"

#include <caf/typed_event_based_actor.hpp>

namespace {
struct number_request {
  int value = 0;
};
struct number_answer {
  int value = 0;
};
struct begin_notice {};
struct end_notice {};
} // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(number_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(number_answer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(begin_notice)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(end_notice)

using namespace terrace;

namespace {

/// Counts the objects that a frame holds.
struct counted {
  explicit counted(int& live) : live_(&live) { ++*live_; }
  counted(const counted& other) : live_(other.live_) { ++*live_; }
  counted& operator=(const counted&) = delete;
  ~counted() { --*live_; }

 private:
  int* live_;
};

struct owner_state {
  task<> progress;
};
using owner = caf::stateful_actor<owner_state>*;
using typed_peer = caf::typed_actor<caf::replies_to<number_request>::with<number_answer>>;
using work = std::function<task<>(owner)>;

/// Begins the work with each `begin_notice` and drops the work before it.
caf::behavior owner_behavior(owner self, work what) {
  return {
      [self, what](begin_notice) {
        self->state.progress = what(self);
        self->state.progress.start();
      },
      [self](end_notice) { self->state.progress = {}; },
  };
}

/// Answers with one more, and ends when it is asked for 0.
caf::behavior peer(caf::event_based_actor* self) {
  return {[self](const number_request& asked) -> caf::result<number_answer> {
    if (asked.value == 0) {
      self->quit();
      return caf::sec::runtime_error;
    }
    return number_answer{asked.value + 1};
  }};
}

struct slow_state {
  std::vector<std::pair<caf::typed_response_promise<number_answer>, int>> kept;
};

struct Task : terrace::test::actor_fixture {
  /// Keeps the requests that it gets until an `end_notice`.
  caf::actor slow() {
    return sys.spawn([](caf::stateful_actor<slow_state>* self) -> caf::behavior {
      return {
          [self](const number_request& asked) {
            auto promise = self->make_response_promise<number_answer>();
            self->state.kept.emplace_back(promise, asked.value);
            return promise;
          },
          [self](end_notice) {
            for (auto& [promise, value] : std::exchange(self->state.kept, {}))
              promise.deliver(number_answer{value + 1});
          },
      };
    });
  }
  void answer_all(const caf::actor& slow) {
    caf::anon_send(slow, end_notice{});
    settle();
  }

  caf::actor begin(work what) {
    auto actor = sys.spawn(owner_behavior, std::move(what));
    caf::anon_send(actor, begin_notice{});
    settle();
    return actor;
  }

  std::vector<int> seen;
  std::vector<std::string> failures;
  int live = 0;
};

task<> ask_once(owner self, caf::actor whom, int value, counted held, Task* test) {
  number_request asked{value};
  auto answer = co_await ask<number_answer>(self, whom, asked, "peer");
  (void) held;
  if (answer)
    test->seen.push_back(answer->value);
  else
    test->failures.push_back(answer.error().text);
}

task<> ask_in_a_row(owner self, caf::actor whom, int times, counted held, Task* test) {
  (void) held;
  int value = 1;
  for (int i = 0; i < times; ++i) {
    number_request asked{value};
    auto answer = co_await ask<number_answer>(self, whom, asked, "peer");
    value = answer->value;
  }
  test->seen.push_back(value);
}

task<> ask_typed(owner self, typed_peer whom, Task* test) {
  number_request asked{5};
  auto answer = co_await ask<number_answer>(self, whom, asked, "typed peer");
  test->seen.push_back(answer->value);
}

task<> ask_several(owner self, std::vector<question<caf::actor, number_request>> questions, Task* test) {
  auto answers = co_await ask_all<number_answer>(self, std::move(questions), "peer");
  for (const auto& answer : answers) {
    if (answer)
      test->seen.push_back(answer->value);
    else
      test->failures.push_back(answer.error().text);
  }
  test->seen.push_back(-1);
}

task<int> twice(owner self, caf::actor whom, int value, counted held) {
  (void) held;
  number_request asked{value};
  auto first = co_await ask<number_answer>(self, whom, asked, "peer");
  number_request next{first->value};
  auto second = co_await ask<number_answer>(self, whom, next, "peer");
  co_return second->value;
}

task<int> at_once(int value) { co_return value; }

task<> in_steps(owner self, caf::actor whom, Task* test) {
  counted held(test->live);
  auto sum = co_await twice(self, whom, 10, held);
  auto more = co_await at_once(7);
  test->seen.push_back(sum + more);
}

task<> end_itself(owner self, caf::actor whom, counted held, Task* test) {
  (void) held;
  number_request asked{1};
  auto answer = co_await ask<number_answer>(self, whom, asked, "peer");
  self->state.progress = {};
  test->seen.push_back(answer->value); // the frame is still there
  test->seen.push_back(test->live);
  number_request another{2};
  auto never = co_await ask<number_answer>(self, whom, another, "peer");
  test->seen.push_back(never->value);
}

task<> replace_itself(owner self, caf::actor whom, counted held, Task* test) {
  (void) held;
  number_request asked{1};
  auto answer = co_await ask<number_answer>(self, whom, asked, "peer");
  self->state.progress = ask_once(self, whom, 40, counted(test->live), test);
  self->state.progress.start();
  test->seen.push_back(answer->value);
}

task<> quit_itself(owner self, caf::actor whom, counted held, Task* test) {
  (void) held;
  number_request asked{1};
  auto answer = co_await ask<number_answer>(self, whom, asked, "peer");
  self->quit();
  test->seen.push_back(answer->value);
}

/// Keeps a task of its own and counts what it is told.
struct keeper final : task_owner {
  void task_ended() noexcept override { ++ended; }
  void task_failed(const std::exception_ptr& why) noexcept override {
    try {
      std::rethrow_exception(why);
    } catch (const std::bad_alloc&) {
      ++failed;
    }
  }
  task<> kept;
  int ended = 0, failed = 0;
};

task<> does_nothing(counted held) {
  (void) held;
  co_return;
}

task<> needs_too_much(counted held) {
  (void) held;
  throw std::bad_alloc();
  co_return;
}

task<> awaits_one_that_fails(counted held, bool& went_on) {
  auto step = needs_too_much(held);
  co_await std::move(step);
  went_on = true;
}

struct never {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  void await_resume() const noexcept {}
};

task<> waits(counted held) {
  (void) held;
  never nothing;
  co_await nothing;
}

} // namespace

TEST(TaskOwner, IsToldOnceWhenTheTaskIsDone) {
  keeper owner;
  int live = 0;
  owner.kept = does_nothing(counted(live));
  EXPECT_TRUE(owner.kept.is_given());
  owner.kept.start(&owner);
  EXPECT_EQ(owner.ended, 1);
  EXPECT_EQ(live, 0);
  owner.kept.end();
  EXPECT_EQ(owner.ended, 1);
  EXPECT_FALSE(task<>().is_given());
}

TEST(TaskOwner, IsToldWhenItEndsOneThatWaits) {
  keeper owner;
  int live = 0;
  owner.kept = waits(counted(live));
  owner.kept.start(&owner);
  EXPECT_TRUE(owner.kept.in_progress());
  EXPECT_EQ(owner.ended, 0);
  owner.kept.end();
  EXPECT_EQ(owner.ended, 1);
  EXPECT_EQ(live, 0);
}

TEST(TaskOwner, IsToldOfAnExceptionThenOfTheEnd) {
  keeper owner;
  int live = 0;
  owner.kept = needs_too_much(counted(live));
  owner.kept.start(&owner);
  EXPECT_EQ(owner.failed, 1);
  EXPECT_EQ(owner.ended, 1);
  EXPECT_EQ(live, 0);
}

TEST(TaskOwner, AnExceptionOfAStepEndsWhoeverAwaitsIt) {
  keeper owner;
  int live = 0;
  bool went_on = false;
  owner.kept = awaits_one_that_fails(counted(live), went_on);
  owner.kept.start(&owner);
  EXPECT_EQ(owner.failed, 1);
  EXPECT_EQ(owner.ended, 1);
  EXPECT_EQ(live, 0);
  EXPECT_FALSE(went_on);
}

TEST_F(Task, FreesAllThatItHoldsWhenItIsDone) {
  auto to = sys.spawn(peer);
  begin([&](owner self) { return ask_once(self, to, 1, counted(live), this); });
  EXPECT_EQ(seen, std::vector<int>{2});
  EXPECT_EQ(live, 0) << "although its actor lives";
}

TEST_F(Task, EndsWithItsActorWhereverItWaits) {
  auto to = slow();
  auto actor = begin([&](owner self) { return ask_once(self, to, 1, counted(live), this); });
  EXPECT_EQ(live, 1);
  caf::anon_send_exit(actor, caf::exit_reason::kill);
  settle();
  EXPECT_EQ(live, 0);
  answer_all(to);
  EXPECT_TRUE(seen.empty());
}

TEST_F(Task, StepsEndWithIt) {
  auto to = slow();
  auto actor = begin([&](owner self) { return in_steps(self, to, this); });
  EXPECT_GE(live, 2);
  caf::anon_send(actor, end_notice{});
  settle();
  EXPECT_EQ(live, 0);
  answer_all(to);
  EXPECT_TRUE(seen.empty());
}

TEST_F(Task, IsToldWhenWhomItAsksHasEnded) {
  auto to = sys.spawn(peer);
  begin([&](owner self) { return ask_once(self, to, 0, counted(live), this); });
  caf::anon_send_exit(to, caf::exit_reason::kill);
  begin([&](owner self) { return ask_once(self, to, 1, counted(live), this); });
  EXPECT_EQ(failures, (std::vector<std::string>{"the peer has ended", "the peer has ended"}));
  EXPECT_EQ(live, 0);
}

TEST_F(Task, AsksTypedActors) {
  auto to = sys.spawn([](typed_peer::pointer) -> typed_peer::behavior_type {
    return {[](const number_request& asked) { return number_answer{asked.value + 1}; }};
  });
  begin([&](owner self) { return ask_typed(self, to, this); });
  EXPECT_EQ(seen, std::vector<int>{6});
}

TEST_F(Task, AsksSeveralAtOnceAndKeepsTheirOrder) {
  auto fast = sys.spawn(peer), ends = sys.spawn(peer), late = slow();
  begin([&](owner self) {
    return ask_several(
        self, {{late, {10}}, {fast, {20}}, {ends, {0}}, {fast, {30}, caf::message_priority::high}}, this);
  });
  EXPECT_TRUE(seen.empty()) << "one has not answered";
  answer_all(late);
  EXPECT_EQ(seen, (std::vector<int>{11, 21, 31, -1}));
  EXPECT_EQ(failures, std::vector<std::string>{"the peer has ended"});
}

TEST_F(Task, AsksNobodyAndGoesOn) {
  begin([&](owner self) { return ask_several(self, {}, this); });
  EXPECT_EQ(seen, std::vector<int>{-1});
}

TEST_F(Task, MayEndWhileSeveralAreAsked) {
  auto fast = sys.spawn(peer), late = slow();
  auto actor = begin([&](owner self) { return ask_several(self, {{late, {1}}, {fast, {2}}}, this); });
  caf::anon_send(actor, end_notice{});
  settle();
  answer_all(late);
  EXPECT_TRUE(seen.empty());
}

TEST_F(Task, AwaitsStepsForTheirValues) {
  auto to = sys.spawn(peer);
  begin([&](owner self) { return in_steps(self, to, this); });
  EXPECT_EQ(seen, std::vector<int>{19});
  EXPECT_EQ(live, 0);
}

TEST_F(Task, WhatIsReplacedInFlightIsNotResumed) {
  auto to = slow();
  int round = 0;
  auto actor = begin([&](owner self) { return ask_once(self, to, 100 * ++round, counted(live), this); });
  caf::anon_send(actor, begin_notice{});
  settle();
  EXPECT_EQ(live, 1);
  answer_all(to);
  EXPECT_EQ(seen, std::vector<int>{201});
}

TEST_F(Task, MayEndItself) {
  auto to = sys.spawn(peer);
  begin([&](owner self) { return end_itself(self, to, counted(live), this); });
  EXPECT_EQ(seen, (std::vector<int>{2, 1})) << "it runs until it waits, and no further";
  EXPECT_EQ(live, 0);
}

TEST_F(Task, MayReplaceItself) {
  auto to = sys.spawn(peer);
  begin([&](owner self) { return replace_itself(self, to, counted(live), this); });
  EXPECT_EQ(seen, (std::vector<int>{2, 41}));
  EXPECT_EQ(live, 0);
}

TEST_F(Task, MayEndItsActor) {
  auto to = sys.spawn(peer);
  begin([&](owner self) { return quit_itself(self, to, counted(live), this); });
  EXPECT_EQ(seen, std::vector<int>{2});
  EXPECT_EQ(live, 0);
}

TEST_F(Task, OneThatIsNeverStartedFreesItsFrame) {
  auto to = sys.spawn(peer);
  begin([&](owner self) {
    auto unused = ask_once(self, to, 1, counted(live), this);
    EXPECT_EQ(live, 1);
    return ask_once(self, to, 2, counted(live), this);
  });
  EXPECT_EQ(seen, std::vector<int>{3});
  EXPECT_EQ(live, 0);
}

TEST_F(Task, ManyFramesAtOnceAndOneAfterAnother) {
  auto to = slow();
  std::vector<caf::actor> actors;
  for (int i = 0; i < 300; ++i)
    actors.push_back(begin([&, i](owner self) { return ask_once(self, to, i, counted(live), this); }));
  EXPECT_EQ(live, 300);
  for (size_t i = 0; i < actors.size(); i += 2)
    caf::anon_send_exit(actors[i], caf::exit_reason::kill);
  settle();
  EXPECT_EQ(live, 150);
  answer_all(to);
  EXPECT_EQ(live, 0);
  EXPECT_EQ(seen.size(), 150u);
  seen.clear();
  auto quick = sys.spawn(peer);
  begin([&](owner self) { return ask_in_a_row(self, quick, 1000, counted(live), this); });
  EXPECT_EQ(seen, std::vector<int>{1001});
}
