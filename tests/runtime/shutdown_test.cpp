#include "runtime/uring.hpp"
#include "support/runtime_fixture.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace terrace::runtime {
namespace {

using test::make_outcome;
using test::message_buffer;
using test::outcome;
using test::receive_into;
using test::runtime_system;
using test::socket_pair;

using go_atom = caf::atom_constant<caf::atom("go")>;

caf::behavior receives(homed_actor* self, int fd, std::shared_ptr<message_buffer> buffer,
                       outcome<void> armed) {
  self->port().submit(receive_into(fd, buffer), self->ctrl(), 0);
  armed->set_value();
  return {[](const io_done&) {}, [self](go_atom) { self->quit(); }};
}

TEST(Shutdown, AnActorThatQuitsWithAReceiveInFlightLeavesNothingBehind) {
  socket_pair pair;
  auto buffer = std::make_shared<message_buffer>(4096);
  std::weak_ptr<message_buffer> watch = buffer;
  {
    runtime_system sys{1};
    auto armed = make_outcome<void>();
    auto actor = spawn_homed(*sys, sys.pool().at(0), receives, pair.fds[0], std::move(buffer), armed);
    armed->get_future().wait();
    caf::anon_send(actor, go_atom::value);
    sys->await_all_actors_done();
    ASSERT_EQ(::write(pair.fds[1], "late", 4), 4);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Shutdown, EndsWithReceivesOfEveryWorkerInFlight) {
  constexpr size_t count = 50;
  std::vector<std::unique_ptr<socket_pair>> pairs;
  std::vector<std::weak_ptr<message_buffer>> watches;
  {
    runtime_system sys{2, 8};
    for (size_t i = 0; i < count; ++i) {
      pairs.push_back(std::make_unique<socket_pair>());
      auto buffer = std::make_shared<message_buffer>(4096);
      watches.push_back(buffer);
      auto armed = make_outcome<void>();
      spawn_homed(*sys, sys.pool().at(i % 2), receives, pairs.back()->fds[0], std::move(buffer), armed);
      armed->get_future().wait();
    }
    // Nobody tells the actors to end: the armed receives keep them, and the workers must cancel them.
    sys->await_actors_before_shutdown(false);
  }
  for (auto& watch : watches)
    EXPECT_TRUE(watch.expired());
}

/// Tells the next actor, which is at home on the other worker, when it ends.
caf::behavior tells_its_heir(homed_actor* self, caf::actor heir) {
  self->attach_functor([heir] { caf::anon_send(heir, go_atom::value); });
  return {[](go_atom) {}};
}

TEST(Shutdown, EmptiesEveryQueueAlthoughCleaningUpFillsThemAgain) {
  runtime_system sys{2};
  caf::actor last = spawn_homed(*sys, sys.pool().at(0), tells_its_heir, caf::actor{});
  for (int i = 1; i < 40; ++i)
    last = spawn_homed(*sys, sys.pool().at(static_cast<size_t>(i % 2)), tells_its_heir, last);
  sys->await_actors_before_shutdown(false);
  caf::anon_send_exit(last, caf::exit_reason::kill);
  last = nullptr;
  sys.reset();
}

TEST(Shutdown, ReportsAWorkerWithoutARingAndStillEndsInOrder) {
  runtime_options options{.workers = 2};
  options.make_ring = [](const runtime_options&) -> result<std::unique_ptr<ring>> {
    return fail(errc::unsupported, explain_ring_error("io_uring_setup", EPERM));
  };
  runtime_system sys{options};
  auto started = sys.pool().wait_started();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, errc::unsupported);
  EXPECT_NE(started.error().text.find("seccomp"), std::string::npos) << started.error().text;
  auto done = make_outcome<int32_t>();
  spawn_homed(*sys, sys.pool().at(1), [done](homed_actor* self) -> caf::behavior {
    self->port().submit({}, self->ctrl(), 0);
    return {[self, done](const io_done& refused) {
      done->set_value(refused.result);
      self->quit();
    }};
  });
  EXPECT_EQ(done->get_future().get(), -ENOSYS);
}

} // namespace
} // namespace terrace::runtime
