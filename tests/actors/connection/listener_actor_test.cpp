// A listening socket with real clients, over the simulated ring.
#include "actors/connection/listener_actor.hpp"

#include "environment.hpp"
#include "group_fixture.hpp"
#include "socket_fixture.hpp"

#include <cerrno>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using namespace std::chrono_literals;
using runtime::io_code;

namespace {

struct Listener : socket_fixture<group_fixture> {
  std::shared_ptr<connection_environment> environment;
  std::vector<std::string> log;
  bool admits = true;
  std::shared_ptr<std::atomic<uint64_t>> next_id = std::make_shared<std::atomic<uint64_t>>(1);
  listener_actor listener;

  Listener() {
    start({.host_objects = 8});
    environment = environment_of(group, probes, log);
  }
  void TearDown() override {
    stop(listener);
    listener = nullptr;
    for (const client_ptr& client : environment->clients->all())
      stop(client->actor);
    environment->group.reset();
    group_fixture::TearDown();
  }

  void listen() {
    listener_arguments with;
    with.socket = open();
    with.path = path;
    with.admits = [this](uid_t, gid_t) { return admits; };
    with.place = [this] { return home(); };
    with.next_id = next_id;
    with.environment = environment;
    listener = spawn_listener(sys, home(), std::move(with));
    settle();
  }
  size_t connections() const { return environment->clients->size(); }
};

} // namespace

TEST_F(Listener, ServesWhoConnects) {
  listen();
  auto first = connect();
  auto second = connect();
  EXPECT_EQ(connections(), 2u);
  EXPECT_EQ(greet(first).code(), errc::ok);
  EXPECT_EQ(greet(second).code(), errc::ok);
}

TEST_F(Listener, NumbersConnectionsOfAllListenersInOneRow) {
  next_id->store(40);
  listen();
  auto first = connect();
  auto second = connect();
  EXPECT_NE(environment->clients->find(connection_id{40}), nullptr);
  EXPECT_NE(environment->clients->find(connection_id{41}), nullptr);
  EXPECT_EQ(next_id->load(), 42u);
}

TEST_F(Listener, KnowsWhoConnected) {
  listen();
  auto client = connect();
  auto record = environment->clients->all().at(0);
  EXPECT_EQ(record->pid, ::getpid());
  EXPECT_EQ(record->uid, ::getuid());
  EXPECT_EQ(record->group, "test");
}

TEST_F(Listener, TellsWhomItDoesNotAdmitWhyAndCloses) {
  admits = false;
  listen();
  auto client = connect();
  auto said = client.next();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->code(), errc::denied);
  EXPECT_NE(said->text().find("uid " + std::to_string(::getuid())), std::string::npos) << said->text();
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(connections(), 0u);
  EXPECT_EQ(log.size(), 1u) << "an operator sees it too";
  admits = true;
  auto next = connect();
  EXPECT_EQ(greet(next).code(), errc::ok) << "the listener goes on";
}

TEST_F(Listener, WhomItDoesNotAdmitCannotFloodTheLog) {
  auto now = std::chrono::steady_clock::now();
  environment->now = [&now] { return now; };
  admits = false;
  listen();
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(connect().next()) << "each is told why";
  EXPECT_EQ(log.size(), 10u);
  now += 1min;
  auto later = connect();
  ASSERT_EQ(log.size(), 11u);
  EXPECT_NE(log.back().find("(90 lines like this were left out)"), std::string::npos) << log.back();
}

TEST_F(Listener, AnswersBusyBeyondConnectionsMax) {
  environment->limits.connections_max = 1;
  listen();
  auto first = connect();
  EXPECT_EQ(greet(first).code(), errc::ok);
  auto second = connect();
  ASSERT_TRUE(second.send(terrace::test::hello_frame()));
  settle();
  auto said = second.next();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->code(), errc::busy);
  EXPECT_NE(said->text().find("connection.connections_max"), std::string::npos) << said->text();
  EXPECT_TRUE(second.ended());
  first.close();
  settle();
  auto third = connect();
  EXPECT_EQ(greet(third).code(), errc::ok) << "a connection that ended makes room";
}

TEST_F(Listener, TheOldestSilentConnectionMakesRoomForANewOne) {
  environment->limits.connections_max = 2;
  listen();
  auto first = connect();
  auto second = connect();
  EXPECT_EQ(connections(), 2u);
  auto third = connect();
  auto said = first.next();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->code(), errc::busy);
  EXPECT_TRUE(first.ended());
  EXPECT_EQ(greet(second).code(), errc::ok);
  EXPECT_EQ(greet(third).code(), errc::ok);
}

TEST_F(Listener, WaitsAMomentWhenThereAreNoDescriptors) {
  for (int number : {EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    log.clear();
    ring.fail_next(io_code::accept, number);
    uint64_t before = ring.started(io_code::accept);
    listen();
    EXPECT_EQ(ring.started(io_code::accept), before + 1) << "it does not try at once";
    EXPECT_EQ(ring.in_flight(io_code::timeout), 1u);
    ASSERT_EQ(log.size(), 1u);
    EXPECT_NE(log[0].find(std::strerror(number)), std::string::npos) << log[0];
    {
      auto waiting = connect(); // in the kernel's backlog
      EXPECT_EQ(connections(), 0u);
      advance(100ms);
      EXPECT_EQ(greet(waiting).code(), errc::ok);
    }
    settle();
    stop(listener);
  }
}

TEST_F(Listener, GoesOnAfterAClientThatLeftBeforeItWasAccepted) {
  ring.fail_next(io_code::accept, ECONNABORTED);
  listen();
  auto client = connect();
  EXPECT_EQ(greet(client).code(), errc::ok);
  EXPECT_TRUE(log.empty());
}

TEST_F(Listener, EndsWhenItIsDrainedAndLeavesItsConnectionsAlone) {
  listen();
  auto client = connect();
  caf::anon_send(listener, drain_notice{});
  settle();
  EXPECT_EQ(ring.in_flight(io_code::accept), 0u);
  EXPECT_EQ(greet(client).code(), errc::ok);
  EXPECT_EQ(connections(), 1u);
}
