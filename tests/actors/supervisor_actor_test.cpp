// The order of start and end, on one thread, with real sockets and files.
#include "actors/supervisor_actor.hpp"

#include "socket_fixture.hpp"
#include "tests/support/actor_fixture.hpp"

#include <fstream>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using namespace std::chrono_literals;
using runtime::io_code;

namespace {

constexpr uint64_t mebibyte = 1 << 20;

struct Supervisor : socket_fixture<terrace::test::actor_fixture> {
  supervisor_arguments with;
  caf::actor supervisor, listener;
  std::vector<std::string> log, warnings;
  std::vector<error> ready;
  std::vector<bool> finished;
  group_probes probes;

  Supervisor() {
    group_plan plan;
    plan.name = "default";
    plan.path = path;
    plan.host.bytes = 4 * mebibyte;
    plan.segment_bytes = 4 * mebibyte;
    with.groups.push_back(plan);
    with.probes.push_back(probes);
    with.place = [this] { return home(); };
    with.detached = false;
    with.spaces = std::make_shared<metrics::space_table>(4);
    with.log = [this](const std::string& line) { log.push_back(line); };
    with.warn = [this](const std::string& line) { warnings.push_back(line); };
    with.ready = [this](const error& why) { ready.push_back(why); };
    with.finished = [this](bool clean) { finished.push_back(clean); };
  }
  void TearDown() override {
    if (supervisor)
      caf::anon_send(supervisor, drain_notice{});
    settle();
    advance(1h); // whoever is still there is killed
    supervisor = listener = {};
  }

  void start() {
    listen_plan listen;
    listen.path = path;
    listen.socket = open();
    listen.admits = [](uid_t, gid_t) { return true; };
    with.listens.push_back(std::move(listen));
    supervisor = spawn_supervisor(sys, std::move(with));
    while (ready.empty() && sched.try_run_once())
      ;
    listener = waiting("listener");
    settle();
  }
  /// The actor of that name among those that have been spawned and did not run yet.
  caf::actor waiting(const std::string& name) {
    for (caf::resumable* job : sched.jobs)
      if (auto* one = dynamic_cast<caf::scheduled_actor*>(job); one != nullptr && one->name() == name)
        return caf::actor_cast<caf::actor>(one->ctrl());
    return {};
  }
  void want_disk(const std::filesystem::path& file) {
    with.groups[0].disk = tier_plan{.bytes = 2 * mebibyte};
    with.groups[0].disk_files = {file.string()};
  }
  void drain() {
    caf::anon_send(supervisor, drain_notice{});
    settle();
  }
};

} // namespace

TEST_F(Supervisor, IsReadyOnceAndServes) {
  start();
  ASSERT_EQ(ready.size(), 1u);
  EXPECT_EQ(ready[0].code, errc::ok) << ready[0].text;
  auto client = connect();
  EXPECT_EQ(greet(client).code(), errc::ok);
  EXPECT_TRUE(finished.empty());
}

TEST_F(Supervisor, SaysWhyItCannotStartAndEnds) {
  with.groups[0].host.allocator = "sideways";
  start();
  ASSERT_EQ(ready.size(), 1u);
  EXPECT_NE(ready[0].code, errc::ok);
  EXPECT_NE(ready[0].text.find("sideways"), std::string::npos) << ready[0].text;
  EXPECT_EQ(finished, std::vector<bool>{false});
}

TEST_F(Supervisor, LetsTheDiskJoinWhenItsFileIsOpen) {
  want_disk(files / "store");
  start();
  EXPECT_TRUE(warnings.empty()) << warnings[0];
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("disk tier of group default joined"), std::string::npos) << log[0];
}

TEST_F(Supervisor, ServesWithoutADiskThatCannotBe) {
  std::ofstream(files / "file") << "x";
  want_disk(files / "file" / "store");
  start();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("disk tier of group default is off"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find((files / "file" / "store").string()), std::string::npos) << warnings[0];
  auto client = connect();
  EXPECT_EQ(greet(client).code(), errc::ok);
  drain();
  EXPECT_EQ(finished, std::vector<bool>{true}) << "a disk that is off is no mistake of ours";
}

TEST_F(Supervisor, RemovesItsSocketsBeforeAnythingElseEnds) {
  start();
  auto client = connect();
  greet(client);
  drain();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(Supervisor, EndsEverythingWhenItIsDrained) {
  want_disk(files / "store");
  start();
  auto client = connect();
  ASSERT_EQ(greet(client).code(), errc::ok);
  drain();
  auto last = client.next();
  ASSERT_TRUE(last) << "a client hears why";
  EXPECT_EQ(last->code(), errc::gone);
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(finished, std::vector<bool>{true});
  EXPECT_EQ(ring.in_flight(io_code::accept), 0u);
  EXPECT_EQ(ring.in_flight(io_code::recvmsg), 0u);
}

TEST_F(Supervisor, EndsOnceHoweverOftenItIsTold) {
  start();
  drain();
  drain();
  EXPECT_EQ(finished.size(), 1u);
}

TEST_F(Supervisor, KillsWhatDoesNotFinishWithinTheGrace) {
  with.shutdown_grace = 500ms;
  start();
  auto client = connect();
  ASSERT_EQ(greet(client).code(), errc::ok);
  ring.hold(io_code::sendmsg); // the client's last answer never gets out
  client.send(kind::status, 2, [](auto& body) { return wire::CreateStatus(body); });
  settle();
  drain();
  EXPECT_TRUE(finished.empty());
  advance(499ms);
  EXPECT_TRUE(finished.empty());
  advance(1ms);
  EXPECT_EQ(finished, std::vector<bool>{true});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("1 connections did not finish"), std::string::npos) << warnings[0];
}

TEST_F(Supervisor, StopsTheDaemonWhenAnActorOfItDies) {
  start();
  auto client = connect();
  ASSERT_EQ(greet(client).code(), errc::ok);
  ASSERT_TRUE(listener);
  caf::anon_send_exit(listener, caf::exit_reason::kill);
  settle();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("an actor of the daemon ended unexpectedly"), std::string::npos) << warnings[0];
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(finished, std::vector<bool>{false});
}
