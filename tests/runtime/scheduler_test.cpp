#include "support/runtime_fixture.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

namespace terrace::runtime {
namespace {

using test::make_outcome;
using test::message_buffer;
using test::outcome;
using test::receive_into;
using test::runtime_system;
using test::send_from;
using test::socket_pair;

using go_atom = caf::atom_constant<caf::atom("go")>;
using ask_atom = caf::atom_constant<caf::atom("ask")>;

enum : uint64_t { received = 1, sent = 2, ticked = 3 };

struct echo_state {
  std::shared_ptr<message_buffer> buffer = std::make_shared<message_buffer>(4096);
  int fd = -1;
};
using echo_actor = caf::stateful_actor<echo_state, homed_actor>;

void arm(echo_actor* self) {
  auto& buffer = self->state.buffer;
  buffer->vector = {buffer->bytes.data(), buffer->bytes.size()};
  self->port().submit(receive_into(self->state.fd, buffer), self->ctrl(), received);
}

/// Sends back what it receives, after asking a floating actor how long it is; ends with its peer.
caf::behavior echo(echo_actor* self, int fd, caf::actor floating) {
  self->state.fd = fd;
  arm(self);
  return {[self, floating](const io_done& done) {
    if (done.tag != received)
      return done.result < 0 ? self->quit() : arm(self);
    if (done.result <= 0)
      return self->quit();
    self->request(floating, caf::infinite, ask_atom::value, done.result)
        .then(
            [self](int32_t n) {
              self->state.buffer->vector.iov_len = static_cast<size_t>(n);
              self->port().submit(send_from(self->state.fd, self->state.buffer), self->ctrl(), sent);
            },
            [self](caf::error&) { self->quit(); });
  }};
}

caf::behavior answers(caf::event_based_actor*) {
  return {[](ask_atom, int32_t n) { return n; }};
}

void echo_over(size_t workers, size_t connections, size_t rounds) {
  runtime_system sys{workers};
  ASSERT_TRUE(sys.pool().wait_started());
  auto floating = sys->spawn(answers);
  std::vector<std::unique_ptr<socket_pair>> pairs;
  for (size_t i = 0; i < connections; ++i) {
    pairs.push_back(std::make_unique<socket_pair>());
    spawn_homed(*sys, sys.pool().place(), echo, pairs.back()->fds[0], floating);
  }
  for (size_t round = 0; round < rounds; ++round) {
    for (auto& pair : pairs)
      ASSERT_EQ(::write(pair->fds[1], "hello", 5), 5);
    for (auto& pair : pairs) {
      char bytes[16];
      ASSERT_EQ(::read(pair->fds[1], bytes, sizeof bytes), 5);
      ASSERT_EQ(std::string_view(bytes, 5), "hello");
    }
  }
  for (auto& pair : pairs)
    pair->close_one(1);
  caf::anon_send_exit(floating, caf::exit_reason::user_shutdown);
}

TEST(Scheduler, EchoesThroughAHomedActorAndAFloatingOne) { echo_over(1, 1, 200); }

TEST(Scheduler, EchoesOverManyConnectionsOnTwoWorkers) { echo_over(2, 16, 50); }

TEST(Scheduler, PollsForTheNextRequestIfItIsToldTo) {
  runtime_system sys{runtime_options{.workers = 1, .ring_entries = 64, .busy_poll_us = 1000}};
  ASSERT_TRUE(sys.pool().wait_started());
  auto floating = sys->spawn(answers);
  socket_pair pair;
  spawn_homed(*sys, sys.pool().place(), echo, pair.fds[0], floating);
  const worker_counters& counted = sys.pool().counters(0);
  for (int round = 0; round < 100'000 && counted.polls_paid.get() == 0; ++round) {
    ASSERT_EQ(::write(pair.fds[1], "hello", 5), 5);
    char bytes[16];
    ASSERT_EQ(::read(pair.fds[1], bytes, sizeof bytes), 5);
  }
  EXPECT_GT(counted.polls_paid.get(), 0u);
  EXPECT_GE(counted.polls.get(), counted.polls_paid.get());
  pair.close_one(1);
  caf::anon_send_exit(floating, caf::exit_reason::user_shutdown);
}

TEST(Scheduler, PlacesHomesOnAllWorkersWhenNoneIsBusy) {
  runtime_system sys{2};
  std::vector<std::unique_ptr<socket_pair>> pairs;
  auto floating = sys->spawn(answers);
  std::multiset<size_t> homes;
  for (size_t i = 0; i < 8; ++i) {
    pairs.push_back(std::make_unique<socket_pair>());
    auto home = sys.pool().place();
    homes.insert(home.worker);
    spawn_homed(*sys, home, echo, pairs.back()->fds[0], floating);
  }
  EXPECT_EQ(homes.count(0), 4u);
  EXPECT_EQ(homes.count(1), 4u);
  for (auto& pair : pairs)
    pair->close_one(1);
  caf::anon_send_exit(floating, caf::exit_reason::user_shutdown);
}

// -- no lost wake-up --

/// Passes a counter back and forth until it is used up. Each message finds the other worker asleep or nearly
/// so.
caf::behavior ping_pong(homed_actor* self, outcome<void> done) {
  return {[self, done](go_atom, uint32_t left, const caf::actor& peer) {
    if (left == 0) {
      done->set_value();
      self->quit();
      return;
    }
    self->send(peer, go_atom::value, left - 1, caf::actor_cast<caf::actor>(self));
  }};
}

TEST(Scheduler, LosesNoWakeUpBetweenTwoWorkersThatKeepFallingAsleep) {
  runtime_system sys{2};
  auto done = make_outcome<void>();
  auto a = spawn_homed(*sys, sys.pool().at(0), ping_pong, done);
  auto b = spawn_homed(*sys, sys.pool().at(1), ping_pong, done);
  caf::anon_send(a, go_atom::value, uint32_t{20000}, b);
  done->get_future().wait();
  caf::anon_send_exit(a, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(b, caf::exit_reason::user_shutdown);
}

TEST(Scheduler, LosesNoWakeUpBetweenTwoWorkersThatPoll) {
  runtime_system sys{runtime_options{.workers = 2, .ring_entries = 64, .busy_poll_us = 20}};
  auto done = make_outcome<void>();
  auto a = spawn_homed(*sys, sys.pool().at(0), ping_pong, done);
  auto b = spawn_homed(*sys, sys.pool().at(1), ping_pong, done);
  caf::anon_send(a, go_atom::value, uint32_t{20000}, b);
  done->get_future().wait();
  caf::anon_send_exit(a, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(b, caf::exit_reason::user_shutdown);
}

caf::behavior counts(homed_actor* self, uint32_t expected, outcome<void> done) {
  auto seen = std::make_shared<uint32_t>(0);
  return {[self, seen, expected, done](go_atom) {
    if (++*seen == expected) {
      done->set_value();
      self->quit();
    }
  }};
}

TEST(Scheduler, LosesNoWakeUpFromForeignThreads) {
  runtime_system sys{2};
  constexpr uint32_t threads = 3;
  constexpr uint32_t messages = 5000;
  auto done = make_outcome<void>();
  auto target = spawn_homed(*sys, sys.pool().at(1), counts, threads * messages, done);
  std::vector<std::thread> senders;
  for (uint32_t i = 0; i < threads; ++i)
    senders.emplace_back([&target] {
      for (uint32_t n = 0; n < messages; ++n) {
        caf::anon_send(target, go_atom::value);
        if (n % 7 == 0)
          std::this_thread::yield();
      }
    });
  for (auto& sender : senders)
    sender.join();
  done->get_future().wait();
}

// -- homes --

caf::behavior names_its_thread(homed_actor*) {
  return {[](ask_atom) {
    return static_cast<uint64_t>(std::hash<std::thread::id>{}(std::this_thread::get_id()));
  }};
}

TEST(Scheduler, AHomedActorRunsOnOneThreadWhoeverWakesIt) {
  runtime_system sys{2};
  caf::scoped_actor self{*sys};
  std::set<uint64_t> all;
  for (size_t worker : {0, 1}) {
    auto actor = spawn_homed(*sys, sys.pool().at(worker), names_its_thread);
    std::set<uint64_t> threads;
    // spawned from this thread, and from actors on either worker
    for (int i = 0; i < 50; ++i) {
      self->request(actor, caf::infinite, ask_atom::value)
          .receive([&](uint64_t id) { threads.insert(id); }, [](caf::error&) { FAIL(); });
      auto relay = spawn_homed(
          *sys, sys.pool().at(i % 2),
          [](homed_actor* relay_self, caf::actor to) -> caf::behavior {
            return {[relay_self, to](ask_atom) { return relay_self->delegate(to, ask_atom::value); }};
          },
          actor);
      self->request(relay, caf::infinite, ask_atom::value)
          .receive([&](uint64_t id) { threads.insert(id); }, [](caf::error&) { FAIL(); });
      caf::anon_send_exit(relay, caf::exit_reason::user_shutdown);
    }
    EXPECT_EQ(threads.size(), 1u);
    all.insert(threads.begin(), threads.end());
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }
  EXPECT_EQ(all.size(), 2u) << "each worker has its own thread";
}

TEST(Scheduler, AnActorSpawnedWithoutAHomeFindsOne) {
  runtime_system sys{2};
  caf::scoped_actor self{*sys};
  auto actor = sys->spawn(names_its_thread);
  std::set<uint64_t> threads;
  for (int i = 0; i < 20; ++i)
    self->request(actor, caf::infinite, ask_atom::value)
        .receive([&](uint64_t id) { threads.insert(id); }, [](caf::error&) { FAIL(); });
  EXPECT_EQ(threads.size(), 1u);
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

using typed_io = caf::typed_actor<caf::reacts_to<io_done>, caf::replies_to<ask_atom>::with<int32_t>>;
struct typed_state {
  caf::typed_response_promise<int32_t> pending;
};
using typed_pointer = caf::stateful_actor<typed_state, homed<typed_io::base>>*;

typed_io::behavior_type asks_the_ring(typed_pointer self) {
  return {[self](const io_done& done) { self->state.pending.deliver(done.result); },
          [self](ask_atom) -> caf::typed_response_promise<int32_t> {
            self->port().submit({.code = io_code::fsync, .fd = -1}, self->ctrl(), 0);
            return self->state.pending = self->make_response_promise<int32_t>();
          }};
}

TEST(Scheduler, ATypedActorMayHaveAHomeToo) {
  runtime_system sys{2};
  caf::scoped_actor self{*sys};
  typed_io actor = spawn_homed(*sys, sys.pool().at(1), asks_the_ring);
  self->request(actor, caf::infinite, ask_atom::value)
      .receive([](int32_t result) { EXPECT_EQ(result, -EBADF); }, [](caf::error&) { FAIL(); });
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

// -- operations --

caf::behavior submits_many(homed_actor* self, size_t count, outcome<size_t> done) {
  for (size_t i = 0; i < count; ++i)
    self->port().submit({}, self->ctrl(), i);
  auto seen = std::make_shared<std::set<uint64_t>>();
  return {[self, seen, count, done](const io_done& result) {
    seen->insert(result.tag);
    if (seen->size() == count) {
      done->set_value(seen->size());
      self->quit();
    }
  }};
}

TEST(Scheduler, TakesMoreOperationsThanTheRingHolds) {
  runtime_system sys{1, 8};
  auto done = make_outcome<size_t>();
  spawn_homed(*sys, sys.pool().at(0), submits_many, 5000, done);
  EXPECT_EQ(done->get_future().get(), 5000u);
}

caf::behavior waits(homed_actor* self, std::chrono::nanoseconds after, outcome<operation_id> submitted,
                    outcome<int32_t> done) {
  submitted->set_value(self->port().submit({.code = io_code::timeout, .after = after}, self->ctrl(), 0));
  return {[self, done](const io_done& result) {
    done->set_value(result.result);
    self->quit();
  }};
}

TEST(Scheduler, ADeadlineIsATimeoutOfTheRing) {
  runtime_system sys{1};
  auto done = make_outcome<int32_t>();
  spawn_homed(*sys, sys.pool().at(0), waits, std::chrono::milliseconds{2}, make_outcome<operation_id>(),
              done);
  EXPECT_EQ(done->get_future().get(), -ETIME);
}

TEST(Scheduler, CancelsFromAForeignThreadAndFromAnotherWorker) {
  runtime_system sys{2};
  for (bool foreign : {true, false}) {
    auto submitted = make_outcome<operation_id>();
    auto done = make_outcome<int32_t>();
    spawn_homed(*sys, sys.pool().at(1), waits, std::chrono::hours{1}, submitted, done);
    auto id = submitted->get_future().get();
    if (foreign)
      sys.pool().cancel(id);
    else
      spawn_homed(*sys, sys.pool().at(0), [id](homed_actor* self) { self->port().cancel(id); });
    EXPECT_EQ(done->get_future().get(), -ECANCELED);
  }
}

// -- fairness --

/// Sends messages to itself until it has seen the ring's answers to all its operations.
caf::behavior babbles(homed_actor* self, uint32_t rounds, outcome<void> done) {
  self->send(self, go_atom::value);
  self->port().submit({.code = io_code::timeout, .after = std::chrono::microseconds{10}}, self->ctrl(), 0);
  auto left = std::make_shared<uint32_t>(rounds);
  return {[self](go_atom) { self->send(self, go_atom::value); },
          [self, left, done](const io_done&) {
            if (--*left == 0) {
              done->set_value();
              self->quit();
              return;
            }
            self->port().submit({.code = io_code::timeout, .after = std::chrono::microseconds{10}},
                                self->ctrl(), 0);
          }};
}

TEST(Scheduler, AnActorThatSendsToItselfDoesNotStarveIO) {
  runtime_system sys{1};
  auto babbled = make_outcome<void>();
  auto babbler = spawn_homed(*sys, sys.pool().at(0), babbles, 1'000'000, babbled);
  socket_pair pair;
  auto floating = sys->spawn(answers);
  spawn_homed(*sys, sys.pool().at(0), echo, pair.fds[0], floating);
  for (int i = 0; i < 20; ++i) {
    char byte = 'x';
    ASSERT_EQ(::write(pair.fds[1], &byte, 1), 1);
    ASSERT_EQ(::read(pair.fds[1], &byte, 1), 1);
  }
  pair.close_one(1);
  caf::anon_send_exit(babbler, caf::exit_reason::kill);
  caf::anon_send_exit(floating, caf::exit_reason::user_shutdown);
}

// -- the next place --

struct turn_log {
  std::vector<int> order; ///< written on one worker
  outcome<void> done = make_outcome<void>();
};

template <class Self>
caf::behavior notes(Self* self, std::shared_ptr<turn_log> log, int number, size_t of) {
  return {[self, log, number, of](go_atom) {
    log->order.push_back(number);
    if (log->order.size() == of)
      log->done->set_value();
    self->quit();
  }};
}

/// The order in which four actors run that a fifth one wakes: 0 to 3.
template <class Self>
std::vector<int> order_of_woken() {
  runtime_system sys{2};
  auto log = std::make_shared<turn_log>();
  std::vector<caf::actor> noting;
  for (int i = 0; i < 4; ++i)
    noting.push_back(spawn_homed(*sys, sys.pool().at(0), notes<Self>, log, i, size_t{4}));
  spawn_homed(*sys, sys.pool().at(0), [noting](homed_actor* self) {
    for (const auto& each : noting)
      self->send(each, go_atom::value);
  });
  log->done->get_future().get();
  return log->order;
}

using request_actor = homed<caf::event_based_actor, woken::next>;

TEST(Scheduler, TheActorOfARequestThatIsWokenLastRunsNextOnTheSameWorker) {
  EXPECT_EQ(order_of_woken<request_actor>(), (std::vector{3, 0, 1, 2}));
}

TEST(Scheduler, OtherActorsRunInTheOrderInWhichTheyAreWoken) {
  EXPECT_EQ(order_of_woken<homed_actor>(), (std::vector{0, 1, 2, 3}));
}

/// Wakes its peer, which wakes it, until somebody ends them.
caf::behavior wakes(request_actor* self) {
  return {[self](go_atom, const caf::actor& peer) {
    self->send(peer, go_atom::value, caf::actor_cast<caf::actor>(self));
  }};
}

void echo_beside_pairs(size_t workers) {
  runtime_system sys{workers};
  std::vector<caf::actor> pairs;
  for (size_t i = 0; i < 2 * workers; ++i)
    pairs.push_back(spawn_homed(*sys, sys.pool().at(i / 2), wakes));
  for (size_t i = 0; i < pairs.size(); i += 2)
    caf::anon_send(pairs[i], go_atom::value, pairs[i + 1]);
  auto floating = sys->spawn(answers); // woken by the connections, and by this thread
  caf::scoped_actor here{*sys};
  for (size_t i = 0; i < workers; ++i) {
    socket_pair socket;
    spawn_homed(*sys, sys.pool().at(i), echo, socket.fds[0], floating);
    for (int round = 0; round < 50; ++round) {
      char byte = 'x';
      ASSERT_EQ(::write(socket.fds[1], &byte, 1), 1);
      ASSERT_EQ(::read(socket.fds[1], &byte, 1), 1);
      here->request(floating, caf::infinite, ask_atom::value, int32_t{1})
          .receive([](int32_t) {}, [](caf::error&) { ADD_FAILURE(); });
    }
    socket.close_one(1);
  }
  for (const auto& each : pairs)
    caf::anon_send_exit(each, caf::exit_reason::kill);
  caf::anon_send_exit(floating, caf::exit_reason::user_shutdown);
}

TEST(Scheduler, ActorsThatWakeOneAnotherStarveNobody) { echo_beside_pairs(1); }

TEST(Scheduler, ActorsThatWakeOneAnotherStarveNobodyOnTwoWorkers) { echo_beside_pairs(2); }

// -- pushed load --

struct shared_log {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::latch all;
  explicit shared_log(ptrdiff_t count) : all(count) {}
};

/// Goes on until every actor of its kind has run at least once, so that the queue stays long; the number of
/// turns is bounded all the same.
caf::behavior works(caf::event_based_actor* self, std::shared_ptr<shared_log> log, uint32_t turns) {
  self->send(self, go_atom::value, turns);
  return {[self, log](go_atom, uint32_t left) {
    {
      std::lock_guard guard(log->mutex);
      log->threads.insert(std::this_thread::get_id());
    }
    if (left == 0) {
      log->all.count_down();
      self->quit();
      return;
    }
    self->send(self, go_atom::value, left - 1);
  }};
}

TEST(Scheduler, PushesHalfOfALongQueueToAWorkerThatSleeps) {
  runtime_system sys{2};
  ASSERT_TRUE(sys.pool().wait_started());
  auto log = std::make_shared<shared_log>(64);
  spawn_homed(*sys, sys.pool().at(0), [log](homed_actor* self) {
    for (int i = 0; i < 64; ++i)
      self->spawn(works, log, 2000u);
  });
  log->all.wait();
  EXPECT_EQ(log->threads.size(), 2u) << "both workers took part";
  EXPECT_GE(sys.pool().counters(0).pushes.get(), 1u);
  EXPECT_GE(sys.pool().counters(0).pushed_jobs.get(), 5u);
}

TEST(Scheduler, CountsWhatItDoes) {
  runtime_system sys{1};
  auto done = make_outcome<size_t>();
  spawn_homed(*sys, sys.pool().at(0), submits_many, 100, done);
  done->get_future().get();
  auto& counters = sys.pool().counters(0);
  EXPECT_GE(counters.jobs.get(), 1u);
  EXPECT_GE(counters.completions.get(), 100u);
  EXPECT_GE(counters.enters.get(), 1u);
  EXPECT_GE(counters.heartbeat.get(), 1u);
  EXPECT_GT(counters.busy_ns.get(), 0u);
}

} // namespace
} // namespace terrace::runtime
