// Connections over a socket pair, with the simulated ring and a clock that the test moves.
#include "actors/connection_actor.hpp"

#include "client_end.hpp"
#include "group_fixture.hpp"
#include "tests/support/runtime_fixture.hpp"

#include <sys/eventfd.h>
#include <sys/mman.h>

#include <cerrno>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using namespace std::chrono_literals;
using runtime::io_code;

namespace {

struct Connection : group_fixture {
  std::shared_ptr<connection_environment> environment = std::make_shared<connection_environment>();
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
  std::shared_ptr<unique_fd> process = std::make_shared<unique_fd>(::eventfd(0, EFD_CLOEXEC)); ///< its pidfd
  std::optional<client_end> client;
  std::vector<std::string> log;
  uint64_t connections = 0;
  uid_t uid = 0;
  uint32_t space = 0;
  uint32_t region = 0;

  Connection() {
    start({.host_objects = 8});
    environment->group = group;
    environment->limits.credit_requests = 2;
    environment->started = time;
    environment->now = [this] { return time; };
    environment->clients = std::make_shared<client_directory>();
    environment->client_probe = probes.clients;
    environment->request_probe = probes.requests;
    environment->spaces = std::make_shared<metrics::space_table>(4);
    environment->log = [this](const std::string& line) { log.push_back(line); };
  }
  void TearDown() override {
    client.reset();
    settle();
    process_ends();
    environment->group.reset();
    group_fixture::TearDown();
  }

  void process_ends() {
    uint64_t one = 1;
    ASSERT_EQ(::write(process->get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    settle();
  }
  void pass(std::chrono::milliseconds by) {
    time += by;
    advance(by);
  }
  void connect() {
    terrace::test::socket_pair pair;
    client.emplace(unique_fd(std::exchange(pair.fds[0], -1)));
    peer who;
    who.pid = 4711;
    who.uid = uid;
    who.pidfd = process;
    spawn_connection(sys, home(), unique_fd(std::exchange(pair.fds[1], -1)), std::move(who),
                     connection_id{++connections}, environment);
    settle();
  }
  template <class F>
  void send(kind what, uint64_t id, F&& make, int descriptor = -1) {
    client->send(what, id, std::forward<F>(make), descriptor);
    settle();
  }
  received answer() {
    settle();
    auto next = client->next();
    EXPECT_TRUE(next) << "nothing was answered";
    return next.value_or(received{});
  }
  void hello(uint32_t version = protocol::version) {
    send(kind::hello, 1,
         [&](auto& body) { return wire::CreateHello(body, version, body.CreateString("test")); });
  }
  /// Greeted, with the fixture's space and a region of its own.
  void ready() {
    connect();
    hello();
    ASSERT_EQ(answer().code(), errc::ok);
    send(kind::open_space, 2, [](auto& body) {
      auto pools = body.CreateVector(std::vector{wire::CreatePool(body, body.CreateString("kv"), payload)});
      return wire::CreateOpenSpace(body, body.CreateString("m"), 0, body.CreateString("bfloat16"),
                                   body.CreateString("KV_2LTD"), 64, 16, 1, pools);
    });
    auto opened = answer();
    ASSERT_EQ(opened.code(), errc::ok) << opened.text();
    space = opened.as<wire::OpenSpaceAnswer>().space();
    unique_fd memory(::memfd_create("region", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(memory.get(), 64 * payload), 0);
    send(
        kind::register_region, 3,
        [](auto& body) { return wire::CreateRegisterRegion(body, wire::RegionKind::memfd, 64 * payload); },
        memory.get());
    auto registered = answer();
    ASSERT_EQ(registered.code(), errc::ok) << registered.text();
    region = registered.as<wire::RegisterRegionAnswer>().region();
  }
  static auto prefix(flatbuffers::FlatBufferBuilder& body, uint64_t first, size_t count) {
    std::vector<uint8_t> digests;
    for (uint64_t n = first; n < first + count; ++n) {
      auto bytes = key_of(n).chunk.bytes;
      digests.insert(digests.end(), bytes.begin(), bytes.end());
    }
    auto listed = body.CreateVector(digests);
    wire::PrefixBuilder made(body);
    made.add_digests(listed);
    return made.Finish();
  }
  void send_store(uint64_t id, uint64_t first, size_t count, uint32_t deadline_ms = 0) {
    send(kind::store, id, [&](flatbuffers::FlatBufferBuilder& body) {
      auto chunks = prefix(body, first, count);
      std::vector<wire::Run> runs;
      for (size_t i = 0; i < count; ++i)
        runs.emplace_back(i * payload, payload, 0, 1);
      auto listed = body.CreateVectorOfStructs(runs);
      wire::StoreBuilder made(body);
      made.add_space(space);
      made.add_prefix(chunks);
      made.add_region(region);
      made.add_runs(listed);
      made.add_deadline_ms(deadline_ms);
      return made.Finish();
    });
  }
  void send_lookup(uint64_t id, uint64_t first, size_t count, bool lease) {
    send(kind::lookup, id, [&](flatbuffers::FlatBufferBuilder& body) {
      auto chunks = prefix(body, first, count);
      wire::LookupBuilder made(body);
      made.add_space(space);
      made.add_prefix(chunks);
      made.add_lease(lease);
      return made.Finish();
    });
  }
  void send_status(uint64_t id) {
    send(kind::status, id, [](auto& body) { return wire::CreateStatus(body); });
  }
  void send_cancel(uint64_t id, uint64_t request) {
    send(kind::cancel, id, [&](auto& body) { return wire::CreateCancel(body, request); });
  }
  uint64_t held() { return report(group->host).held_objects; }
};

/// Its host memory is full and held, so that stores wait.
struct BusyConnection : Connection {
  hold_ptr kept;

  void SetUp() override {
    ready();
    send_store(10, 0, 8);
    auto stored = answer();
    ASSERT_EQ(stored.code(), errc::ok) << stored.text();
    ASSERT_EQ(stored.as<wire::StoreAnswer>().stored_chunks(), 8u);
    kept = hold(group->host, 0, 8);
  }
  void TearDown() override {
    kept.reset();
    Connection::TearDown();
  }
  uint64_t waiting() { return report(group->host).waiting; }
};

} // namespace

// ---- handshake ----

TEST_F(Connection, GreetsAndTellsItsCredits) {
  connect();
  hello();
  auto greeted = answer();
  ASSERT_EQ(greeted.kind, protocol::answer_to(kind::hello));
  EXPECT_EQ(greeted.id, 1u);
  EXPECT_EQ(greeted.as<wire::HelloAnswer>().credit_requests(), 2u);
  EXPECT_EQ(greeted.as<wire::HelloAnswer>().version(), protocol::version);
}

TEST_F(Connection, RefusesAVersionThatItDoesNotSpeakAndSaysWhichItDoes) {
  connect();
  hello(99);
  auto refused = answer();
  EXPECT_EQ(refused.code(), errc::unsupported);
  EXPECT_NE(refused.text().find("expected " + std::to_string(protocol::version)), std::string::npos);
}

TEST_F(Connection, EndsWhenAnythingComesBeforeHello) {
  connect();
  send_status(1);
  auto told = answer();
  EXPECT_EQ(told.id, protocol::connection_request_id);
  EXPECT_EQ(told.code(), errc::bad_request);
  EXPECT_TRUE(client->ended());
  EXPECT_EQ(environment->clients->size(), 0u);
}

TEST_F(Connection, AMalformedFrameEndsItWithAReason) {
  connect();
  hello();
  answer();
  client->send_raw(std::vector<uint8_t>(64, 0xff));
  auto told = answer();
  EXPECT_EQ(told.id, protocol::connection_request_id);
  EXPECT_EQ(told.code(), errc::bad_request);
  EXPECT_TRUE(client->ended());
  EXPECT_EQ(environment->clients->size(), 0u);
}

TEST_F(Connection, ARequestIdThatIsInFlightEndsIt) {
  ready();
  auto kept = hold(group->host, 0, 1);
  store(0, 8);
  kept = hold(group->host, 0, 8);
  send_store(20, 100, 1);
  send_status(20);
  auto told = answer();
  EXPECT_EQ(told.id, protocol::connection_request_id);
  EXPECT_NE(told.text().find("in flight"), std::string::npos);
  EXPECT_TRUE(client->ended());
}

TEST_F(Connection, FramesMayArriveByteByByte) {
  ring.shorten(io_code::recvmsg, 1);
  ring.shorten(io_code::sendmsg, 7);
  connect();
  hello();
  EXPECT_EQ(answer().code(), errc::ok);
}

// ---- credits, deadlines, cancels ----

TEST_F(BusyConnection, StopsReadingWhenItsCreditsAreUsedAndGoesOnWhenOneComesBack) {
  send_store(20, 100, 1);
  EXPECT_EQ(ring.in_flight(io_code::recvmsg), 1u);
  send_store(21, 101, 1);
  EXPECT_EQ(ring.in_flight(io_code::recvmsg), 0u);
  send_status(22);
  EXPECT_FALSE(client->next());
  kept.reset();
  for (uint64_t id : {20, 21, 22}) {
    auto one = answer();
    EXPECT_EQ(one.id, id);
    EXPECT_EQ(one.code(), errc::ok) << one.text();
  }
  EXPECT_EQ(ring.in_flight(io_code::recvmsg), 1u);
}

TEST_F(BusyConnection, ADeadlinePassesWhileTheMemoryIsHeldAndIsNoSpace) {
  send_store(20, 100, 1, 50);
  pass(49ms);
  EXPECT_FALSE(client->next());
  pass(1ms);
  auto refused = answer();
  EXPECT_EQ(refused.id, 20u);
  EXPECT_EQ(refused.code(), errc::no_space);
  EXPECT_NE(refused.text().find("leases and transfers hold"), std::string::npos) << refused.text();
  EXPECT_EQ(waiting(), 0u);
}

TEST_F(BusyConnection, EachRequestHasItsOwnDeadlineAndTheSoonerOneGoesFirst) {
  send_store(20, 100, 1, 500);
  send_store(21, 101, 1, 50);
  pass(50ms);
  EXPECT_EQ(answer().id, 21u);
  EXPECT_FALSE(client->next());
  pass(450ms);
  EXPECT_EQ(answer().id, 20u);
}

TEST_F(BusyConnection, ARequestThatStatesNoDeadlineHasTheDefault) {
  send_store(20, 100, 1);
  pass(environment->limits.request_deadline - 1ms);
  EXPECT_FALSE(client->next());
  pass(1ms);
  EXPECT_EQ(answer().id, 20u);
}

TEST_F(BusyConnection, ACancelEndsTheRequestAndSaysThatItFoundIt) {
  environment->limits.credit_requests = 3;
  send_store(20, 100, 1);
  send_cancel(21, 20);
  std::map<uint64_t, received> answers;
  for (int i = 0; i < 2; ++i) {
    auto one = answer();
    answers[one.id] = one;
  }
  EXPECT_EQ(answers[20].code(), errc::cancelled);
  EXPECT_TRUE(answers[21].as<wire::CancelAnswer>().found());
  EXPECT_EQ(waiting(), 0u);
  send_cancel(22, 20);
  EXPECT_FALSE(answer().as<wire::CancelAnswer>().found());
}

// ---- ends ----

TEST_F(BusyConnection, AClosedSocketCancelsWhatWaitsForIt) {
  send_store(20, 100, 1);
  EXPECT_EQ(waiting(), 1u);
  client->close();
  settle();
  EXPECT_EQ(waiting(), 0u);
  EXPECT_EQ(environment->clients->size(), 0u);
}

TEST_F(BusyConnection, TheEndOfTheProcessCancelsWhatWaitsForItThoughSomebodyHoldsItsSocket) {
  send_store(20, 100, 1);
  process_ends();
  EXPECT_EQ(waiting(), 0u);
  EXPECT_EQ(environment->clients->size(), 0u);
  EXPECT_TRUE(client->ended());
}

TEST_F(Connection, AReceiveErrorEndsIt) {
  connect();
  hello();
  answer();
  ring.fail_next(io_code::recvmsg, ECONNRESET);
  send_status(5); // completes the receive that is armed; the next one fails
  EXPECT_TRUE(client->ended());
  EXPECT_EQ(environment->clients->size(), 0u);
}

TEST_F(Connection, ASendErrorEndsIt) {
  connect();
  ring.fail_next(io_code::sendmsg, EPIPE);
  hello();
  EXPECT_FALSE(client->next());
  EXPECT_TRUE(client->ended());
  EXPECT_EQ(environment->clients->size(), 0u);
}

TEST_F(Connection, ASendThatTheKernelPutOffIsTriedAgain) {
  connect();
  ring.fail_next(io_code::sendmsg, EAGAIN);
  hello();
  EXPECT_EQ(answer().code(), errc::ok);
}

TEST_F(Connection, LeasesEndWithTheirConnection) {
  ready();
  store(0, 4);
  send_lookup(20, 0, 4, true);
  auto found = answer();
  ASSERT_EQ(found.code(), errc::ok) << found.text();
  EXPECT_EQ(found.as<wire::LookupAnswer>().found_chunks(), 4u);
  EXPECT_EQ(held(), 4u);
  client->close();
  settle();
  EXPECT_EQ(held(), 0u);
}

TEST_F(Connection, WhatALivingProcessMayBeReadingStaysUntilItEnds) {
  ready();
  store(0, 4);
  send_lookup(20, 0, 4, true);
  auto found = answer();
  const auto* id = found.as<wire::LookupAnswer>().lease();
  ASSERT_NE(id, nullptr);
  std::vector<uint8_t> lease(id->begin(), id->end());
  send(kind::read_lease, 21, [&](auto& body) {
    auto named = body.CreateVector(lease);
    return wire::CreateReadLease(body, named, 0, 2);
  });
  auto places = answer();
  ASSERT_EQ(places.code(), errc::ok) << places.text();
  EXPECT_EQ(places.as<wire::ReadLeaseAnswer>().locations()->size(), 2u);
  client->close();
  settle();
  EXPECT_GE(held(), 2u);
  EXPECT_EQ(environment->clients->size(), 1u);
  process_ends();
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(environment->clients->size(), 0u);
}

TEST_F(Connection, AnOldLeaseIsReportedOnce) {
  ready();
  store(0, 1);
  send_lookup(20, 0, 1, true);
  answer();
  pass(environment->limits.lease_warn_after);
  auto warnings = [&] {
    return std::count_if(log.begin(), log.end(), [](const std::string& line) {
      return line.find("lease.warn_after") != std::string::npos;
    });
  };
  EXPECT_EQ(warnings(), 1);
  pass(environment->limits.lease_warn_after);
  EXPECT_EQ(warnings(), 1);
}

TEST_F(Connection, OnlyTheDaemonsUserAndRootSetPolicies) {
  auto set = [this](uint64_t id, const char* policy) {
    send(kind::set_policy, id, [&](auto& body) { return wire::CreateSetPolicyDirect(body, "host", policy); });
    return answer();
  };
  ready();
  auto done = set(20, "arc");
  ASSERT_EQ(done.code(), errc::ok) << done.text();
  EXPECT_EQ(done.as<wire::SetPolicyAnswer>().before()->str(), "lru");
  EXPECT_EQ(set(21, "clock").code(), errc::bad_request);
  uid = ::geteuid() + 1;
  ready();
  auto refused = set(22, "fifo");
  EXPECT_EQ(refused.code(), errc::denied);
  EXPECT_NE(refused.text().find(std::to_string(uid)), std::string::npos) << refused.text();
  send(kind::policies, 23, [](auto& body) { return wire::CreatePolicies(body); });
  auto told = answer();
  ASSERT_EQ(told.code(), errc::ok) << told.text();
  EXPECT_EQ(told.as<wire::PoliciesAnswer>().tiers()->Get(0)->policy()->str(), "arc");
}
