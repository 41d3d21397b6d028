// The order of start and end, on one thread, with real sockets and files.
#include "actors/supervision/supervisor_actor.hpp"

#include "socket_fixture.hpp"
#include "tests/support/actor_fixture.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include <fstream>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using namespace std::chrono_literals;
using runtime::io_code;

namespace supervisor_actor_test {

constexpr uint64_t mebibyte = 1 << 20;

struct Supervisor : socket_fixture<terrace::test::actor_fixture> {
  supervisor_arguments with;
  supervisor_actor supervisor;
  caf::actor listener;
  std::vector<std::string> log, warnings;
  std::vector<error> ready;
  std::vector<bool> finished;
  group_probes probes;
  std::vector<unique_fd> polled;

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
    with.starts_processes = false;
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
    supervisor = nullptr;
    listener = {};
  }

  void start() {
    begin();
    settle();
  }
  /// Until it serves; what it has begun goes on with `settle`.
  void begin() {
    listen_plan listen;
    listen.path = path;
    listen.socket = open();
    listen.admits = [](uid_t, gid_t) { return true; };
    with.listens.push_back(std::move(listen));
    supervisor = spawn_supervisor(sys, std::move(with));
    while (ready.empty() && sched.try_run_once())
      ;
    listener = waiting("listener");
  }
  /// The actor of that name among those that have been spawned and did not run yet.
  caf::actor waiting(const std::string& name) {
    for (caf::resumable* job : sched.jobs)
      if (auto* one = dynamic_cast<caf::scheduled_actor*>(job); one != nullptr && one->name() == name)
        return caf::actor_cast<caf::actor>(one->ctrl());
    return {};
  }
  void want_disk(const std::filesystem::path& file) {
    with.groups[0].disk = tier_config{.kind = tier_kind::disk, .bytes = 2 * mebibyte};
    with.groups[0].disk_files = {file.string()};
  }
  /// The file of the disk that the daemon is to have, open elsewhere.
  unique_fd lock_disk() {
    want_disk(files / "store");
    unique_fd other(::open((files / "store").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
    return other;
  }
  /// What the supervisor polls; the first few are ready at once, whatever they are.
  void watch_polls(size_t ready_at_once = 0) {
    ring.respond([this, ready_at_once](const runtime::io_request& request) -> std::optional<int32_t> {
      if (request.code != io_code::poll)
        return std::nullopt;
      polled.emplace_back(::dup(request.fd));
      return polled.size() <= ready_at_once ? std::optional<int32_t>(POLLIN) : std::nullopt;
    });
  }
  /// Until all that was polled is ready: whoever waited for the lock is done with it.
  void await_polled() {
    for (const unique_fd& one : polled) {
      pollfd item{one.get(), POLLIN, 0};
      ASSERT_EQ(::poll(&item, 1, -1), 1);
    }
  }
  void drain() {
    caf::anon_send(supervisor, drain_notice{});
    settle();
  }
};

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

TEST_F(Supervisor, WaitsForAFileThatAnotherHasOpenAndServesMeanwhile) {
  unique_fd other = lock_disk();
  watch_polls();
  start();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("the disk tier of group default waits: "), std::string::npos) << warnings[0];
  EXPECT_TRUE(log.empty()) << log[0];
  ring.respond(nullptr); // a connection polls its client
  auto client = connect();
  EXPECT_EQ(greet(client).code(), errc::ok);
  other.reset();
  await_polled();
  settle();
  EXPECT_EQ(warnings.size(), 1u);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_NE(log[0].find("joined"), std::string::npos) << log[0];
}

TEST_F(Supervisor, WaitsAgainForAFileThatHasBeenTakenMeanwhile) {
  unique_fd other = lock_disk();
  watch_polls(1); // it was free for a moment
  start();
  ASSERT_EQ(polled.size(), 2u);
  EXPECT_EQ(warnings.size(), 2u);
  EXPECT_TRUE(log.empty()) << log[0];
  other.reset();
  await_polled();
  settle();
  EXPECT_EQ(warnings.size(), 2u);
  EXPECT_EQ(log.size(), 1u);
}

TEST_F(Supervisor, IsWithoutADiskWhoseLockCannotBeWaitedFor) {
  unique_fd other = lock_disk();
  begin();
  while (waiting("preparer")) // until it has told that the file is locked
    sched.try_run_once();
  std::filesystem::remove(files / "store");
  settle();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("disk tier of group default is off"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("cannot wait for its lock"), std::string::npos) << warnings[0];
  drain();
  EXPECT_EQ(finished, std::vector<bool>{true});
}

TEST_F(Supervisor, IsWithoutADiskWhenTheWaitForItsLockFails) {
  unique_fd other = lock_disk();
  ring.fail_next(io_code::poll, ENOMEM);
  start();
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[1].find("disk tier of group default is off"), std::string::npos) << warnings[1];
  EXPECT_NE(warnings[1].find("Cannot allocate memory"), std::string::npos) << warnings[1];
  drain();
  EXPECT_EQ(finished, std::vector<bool>{true});
}

TEST_F(Supervisor, EndsWhileItWaitsForALock) {
  unique_fd other = lock_disk();
  start();
  EXPECT_EQ(warnings.size(), 1u);
  drain();
  EXPECT_EQ(finished, std::vector<bool>{true});
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
  EXPECT_NE(warnings[0].find("1 connection did not finish"), std::string::npos) << warnings[0];
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

} // namespace supervisor_actor_test
