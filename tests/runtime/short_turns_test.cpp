#include "runtime/turn_times.hpp"

#include "tests/support/actor_fixture.hpp"

#include <caf/scoped_execution_unit.hpp>

namespace terrace::runtime {
namespace {

struct test_clock {
  static inline std::chrono::steady_clock::time_point time{};
  static std::chrono::steady_clock::time_point now() { return time; }
};

using slow_actor = short_turns<caf::event_based_actor, test_clock>;

struct ShortTurns : terrace::test::actor_fixture {
  std::vector<int> handled;

  void TearDown() override { shut_down(); } // messages in mailboxes are handled while `handled` still exists

  /// An actor with messages 0, 1, ... in its mailbox. Handling one takes `each`.
  caf::actor busy(int messages, std::chrono::microseconds each) {
    auto actor = sys.spawn([this, each](slow_actor*) {
      return caf::behavior{[this, each](int number) {
        handled.push_back(number);
        test_clock::time += each;
      }};
    });
    settle();
    for (int i = 0; i < messages; ++i)
      caf::anon_send(actor, i);
    return actor;
  }
  /// Runs one turn of the waiting actor.
  void turn(size_t messages_at_most) {
    ASSERT_EQ(sched.jobs.size(), 1u);
    auto* job = sched.jobs.front();
    sched.jobs.pop_front();
    caf::scoped_execution_unit worker{&sys};
    if (job->resume(&worker, messages_at_most) == caf::resumable::resume_later)
      sched.jobs.push_back(job);
    else
      caf::intrusive_ptr_release(job);
  }
};

TEST_F(ShortTurns, EndsWithTheFirstMessageThatTookTooLong) {
  auto actor = busy(5, slow_actor::turn);
  turn(32);
  EXPECT_EQ(handled.size(), 1u);
  turn(32);
  EXPECT_EQ(handled, (std::vector{0, 1}));
}

TEST_F(ShortTurns, HandlesAsManyShortMessagesAsFit) {
  auto actor = busy(20, slow_actor::turn / 5);
  turn(32);
  EXPECT_EQ(handled.size(), 5u);
}

TEST_F(ShortTurns, HandlesNoMoreMessagesThanOtherActorsMay) {
  auto actor = busy(20, std::chrono::microseconds(0));
  turn(8);
  EXPECT_EQ(handled.size(), 8u);
  turn(32);
  EXPECT_EQ(handled.size(), 20u);
  EXPECT_TRUE(sched.jobs.empty()) << "nothing is left to do";
}

} // namespace
} // namespace terrace::runtime
