// Connections over a socket pair, with the simulated ring and a clock that the test moves.
#include "connection_fixture.hpp"

#include <algorithm>
#include <cerrno>
#include <set>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using namespace std::chrono_literals;
using runtime::io_code;

namespace {

struct Connection : connection_fixture {};

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
  /// Answers come in any order: credit is back as soon as one is sent, and what waited for it may be faster than the next.
  void expect_answers(std::set<uint64_t> ids) {
    for (size_t left = ids.size(); left > 0; --left) {
      auto one = answer();
      EXPECT_EQ(ids.erase(one.id), 1u) << one.id;
      EXPECT_EQ(one.code(), errc::ok) << one.text();
    }
  }
};

} // namespace

// ---- the edge to the policy ----

TEST_F(Connection, WithoutCreditItReadsOnOnceThePolicyHasRead) {
  ready();
  auto end = [](auto& body) { return wire::CreateEndInference(body, 7); };
  ASSERT_TRUE(group->uses->offer(credit_gate::waiting_max)); // other connections' messages
  for (uint64_t id = 10; id < 20; ++id) {
    send(kind::end_inference, id, end);
    EXPECT_EQ(answer().code(), errc::ok);
    EXPECT_EQ(group->uses->waiting(), credit_gate::waiting_max) << "the policy has read it";
  }
  group->uses->heard(credit_gate::waiting_max);
  send(kind::end_inference, 20, end);
  EXPECT_EQ(answer().code(), errc::ok);
  EXPECT_EQ(group->uses->waiting(), 0u);
}

TEST_F(Connection, WithoutCreditOfTheGroupLeasesGoOn) {
  ready();
  send_store(10, 0, 1);
  ASSERT_EQ(answer().code(), errc::ok);
  ASSERT_TRUE(group->lease_notices->offer(credit_gate::waiting_max)); // other connections' notices
  for (uint64_t id = 20; id < 40; id += 2) {
    send_lookup(id, 0, 1, true);
    auto found = answer();
    ASSERT_EQ(found.code(), errc::ok) << found.text();
    auto lease = protocol::to_lease_id(found.as<wire::LookupAnswer>().lease());
    send(kind::release, id + 1, [&](auto& body) {
      return wire::CreateRelease(body, body.CreateVector(lease.bytes.data(), lease.bytes.size()));
    });
    ASSERT_EQ(answer().code(), errc::ok);
    EXPECT_EQ(group->lease_notices->waiting(), credit_gate::waiting_max) << "the group has read them";
  }
}

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
  client->send(std::vector<uint8_t>(64, 0xff));
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

// ---- answers leave at the end of the turn ----

TEST_F(Connection, HearsNothingOfAnswersThatTheSocketTakes) {
  ready();
  send_status(20);
  EXPECT_EQ(answer().id, 20u);
  EXPECT_EQ(ring.started(io_code::sendmsg), 0u);
  EXPECT_EQ(environment->clients->all().at(0)->requests_in_flight.load(), 0u);
}

TEST_F(Connection, WhatTheSocketDoesNotTakeIsSentLater) {
  ready();
  ring.shorten(io_code::sendmsg, 100);
  send_status(20);
  auto told = answer();
  EXPECT_EQ(told.id, 20u);
  EXPECT_EQ(told.code(), errc::ok);
  EXPECT_GT(ring.started(io_code::sendmsg), 0u);
  ring.send_at_once(false);
  send_status(21);
  EXPECT_EQ(answer().id, 21u);
}

TEST_F(Connection, AnAnswerInTheRingGoesBeforeLaterOnes) {
  ready();
  ring.hold(io_code::sendmsg);
  send_status(20);
  send_lookup(21, 0, 1, false);
  ring.release(io_code::sendmsg);
  EXPECT_EQ(answer().id, 20u);
  EXPECT_EQ(answer().id, 21u);
}

TEST_F(Connection, AShortLookupIsAnsweredInItsTurnAndOneOfManyInATurnIs) {
  ready();
  send_store(20, 0, 4);
  ASSERT_EQ(answer().code(), errc::ok);
  auto found_after_one_turn = [this](uint64_t id, size_t chunks) {
    settle();
    for (uint64_t each : {id, id + 1})
      EXPECT_TRUE(client->send(kind::lookup, each, [&](flatbuffers::FlatBufferBuilder& body) {
        auto asked = prefix(body, 0, chunks);
        return wire::CreateLookup(body, space, asked);
      }));
    run_some(2); // both are received, and the connection has its turn
    auto first = client->next();
    EXPECT_FALSE(client->next()) << "the second one takes a LOOKUP";
    EXPECT_EQ(answer().id, id + 1);
    return first ? first->as<wire::LookupAnswer>().found_chunks() : UINT32_MAX;
  };
  EXPECT_EQ(found_after_one_turn(30, 6), 4u);
  auto& index = const_cast<tier_index&>(*group->tiers().front().index);
  auto shut = index.table().shut(); // the tier is asked
  send_lookup(40, 0, 6, false);
  EXPECT_EQ(answer().as<wire::LookupAnswer>().found_chunks(), 4u);
}

// ---- credits, deadlines, cancels ----

TEST_F(BusyConnection, StopsReadingWhenItsCreditsAreUsedAndGoesOnWhenOneComesBack) {
  send_store(20, 100, 1);
  EXPECT_EQ(ring.in_flight(io_code::recvmsg), 1u);
  send_store(21, 101, 1);
  send_status(22);
  send_status(23);
  EXPECT_EQ(ring.in_flight(io_code::recvmsg), 1u) << "so many wait outside the socket";
  send_status(24);
  EXPECT_EQ(ring.in_flight(io_code::recvmsg), 0u) << "the header of a request that needs a credit has come";
  EXPECT_FALSE(client->next());
  kept.reset();
  expect_answers({20, 21, 22, 23, 24});
  EXPECT_EQ(ring.in_flight(io_code::recvmsg), 1u);
}

TEST_F(BusyConnection, TheEndOfTheStreamIsSeenWithoutCredit) {
  send_store(20, 100, 1);
  send_store(21, 101, 1);
  for (uint64_t id : {22, 23, 24}) {
    send_status(id);
    EXPECT_EQ(waiting(), 2u);
  }
  EXPECT_EQ(ring.in_flight(io_code::recvmsg), 0u);
  client->close();
  settle();
  EXPECT_EQ(waiting(), 0u);
  EXPECT_EQ(environment->clients->size(), 0u);
}

TEST_F(BusyConnection, CancelsAreServedWithoutCreditUpToABound) {
  send_store(20, 100, 1);
  send_store(21, 101, 1);
  for (uint64_t id = 100; id < 100 + 2 * protocol::giving_back_requests_max; ++id)
    send_cancel(id, 5); // no such request
  for (uint64_t id = 100; id < 100 + 2 * protocol::giving_back_requests_max; ++id)
    EXPECT_FALSE(answer().as<wire::CancelAnswer>().found());
  send_cancel(999, 20);
  std::map<uint64_t, received> answers;
  for (int i = 0; i < 2; ++i) {
    auto one = answer();
    answers[one.id] = one;
  }
  EXPECT_EQ(answers[20].code(), errc::cancelled);
  EXPECT_TRUE(answers[999].as<wire::CancelAnswer>().found());
}

TEST_F(BusyConnection, ACancelPassesRequestsThatWaitForCredit) {
  send_store(20, 100, 1);
  send_store(21, 101, 1);
  send_store(22, 102, 1);
  send_lookup(23, 0, 1, false);
  send_cancel(24, 20);
  auto first = answer();
  auto second = answer();
  EXPECT_EQ(first.id == 20 ? first.code() : second.code(), errc::cancelled);
  EXPECT_TRUE((first.id == 24 ? first : second).as<wire::CancelAnswer>().found());
  EXPECT_EQ(waiting(), 2u) << "there was credit for the next one";
}

TEST_F(BusyConnection, ARequestThatWaitsForCreditCanBeCancelled) {
  send_store(20, 100, 1);
  send_store(21, 101, 1);
  send_store(22, 102, 1);
  send_status(23);
  send_cancel(24, 22);
  auto cancelled = answer();
  EXPECT_EQ(cancelled.id, 22u);
  EXPECT_EQ(cancelled.code(), errc::cancelled) << cancelled.text();
  EXPECT_TRUE(answer().as<wire::CancelAnswer>().found());
  kept.reset();
  expect_answers({20, 21, 23});
}

TEST_F(BusyConnection, ARequestThatWaitedIsServedFromItsOwnBytes) {
  send_store(20, 100, 1);
  send_store(21, 101, 1);
  send_lookup(22, 0, 8, false);
  for (uint64_t id = 30; id < 60; ++id) { // what was received since lies where it was
    send_cancel(id, 5);
    answer();
  }
  kept.reset();
  auto found = answer();
  while (found.id == 20 || found.id == 21)
    found = answer();
  EXPECT_EQ(found.id, 22u);
  EXPECT_EQ(found.as<wire::LookupAnswer>().requested_chunks(), 8u);
}

TEST_F(BusyConnection, ALongDeadlineIsShortened) {
  send_store(20, 100, 1, 4'000'000'000);
  pass(environment->limits.request_deadline_max - 1ms);
  EXPECT_FALSE(client->next());
  pass(1ms);
  EXPECT_EQ(answer().code(), errc::no_space);
}

TEST_F(Connection, ThatSaysNothingEnds) {
  connect();
  pass(environment->limits.handshake_deadline - 1ms);
  EXPECT_FALSE(client->next());
  pass(1ms);
  auto told = answer();
  EXPECT_EQ(told.code(), errc::deadline);
  EXPECT_TRUE(client->ended());
  EXPECT_EQ(environment->clients->size(), 0u);
}

TEST_F(Connection, ThatDoesNotReadWhyItIsEndedEndsAllTheSame) {
  connect();
  hello();
  answer();
  ring.hold(io_code::sendmsg);
  client->send(std::vector<uint8_t>(64, 0xff));
  settle();
  EXPECT_EQ(environment->clients->size(), 1u);
  pass(environment->limits.handshake_deadline);
  EXPECT_EQ(environment->clients->size(), 0u);
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
  kept->keep_first(7);
  send_store(23, 100, 1);
  auto stored = answer();
  ASSERT_EQ(stored.code(), errc::ok) << stored.text();
  EXPECT_EQ(stored.as<wire::StoreAnswer>().stored_chunks(), 1u) << "nothing was left of it";
}

// ---- the memory of the trust group ----

/// Another connection's request has all of it.
struct ConnectionWithoutRoom : Connection {
  static constexpr size_t objects = request_memory::few_bytes / object_credit + 1;
  request_memory& memory() { return *environment->memory; }
  static constexpr uint64_t others = 1 << 20;

  void SetUp() override {
    environment->memory = std::make_shared<request_memory>(others);
    ready();
    ASSERT_TRUE(memory().charge_objects(connection_id{1000}, others, [] {}));
  }
};

TEST_F(ConnectionWithoutRoom, ARequestOfManyObjectsWaitsAndOneOfFewDoesNot) {
  send_lookup(19, 0, 1, true);
  EXPECT_EQ(answer().id, 19u);
  send_lookup(20, 0, objects, true);
  EXPECT_FALSE(client->next());
  EXPECT_EQ(memory().object_bytes(), others);
  memory().give_back_objects(others);
  auto found = answer();
  EXPECT_EQ(found.id, 20u);
  EXPECT_EQ(found.as<wire::LookupAnswer>().requested_chunks(), objects);
  EXPECT_EQ(memory().object_bytes(), 0u);
}

TEST_F(ConnectionWithoutRoom, ARequestThatWaitsCanBeCancelled) {
  send_lookup(20, 0, objects, true);
  send_cancel(21, 20);
  std::map<uint64_t, received> answers;
  for (int i = 0; i < 2; ++i) {
    auto one = answer();
    answers[one.id] = one;
  }
  EXPECT_EQ(answers[20].code(), errc::cancelled);
  EXPECT_NE(answers[20].text().find("connection.group_bytes"), std::string::npos) << answers[20].text();
  memory().give_back_objects(others);
  settle();
  EXPECT_EQ(memory().object_bytes(), 0u);
  send_lookup(22, 0, objects, true);
  EXPECT_EQ(answer().code(), errc::ok);
}

TEST_F(ConnectionWithoutRoom, ItsEndMakesWayForOthers) {
  send_lookup(20, 0, objects, true);
  bool woken = false;
  EXPECT_FALSE(memory().charge_objects(connection_id{1001}, 1, [&] { woken = true; }));
  client->close();
  settle();
  memory().give_back_objects(others);
  EXPECT_TRUE(woken);
  EXPECT_TRUE(memory().charge_objects(connection_id{1001}, 1, [] {}));
  memory().give_back_objects(1);
}

/// A request of 80 KiB, of which most is padding, and a cancel behind it.
static std::vector<uint8_t> large_request_and_cancel() {
  auto frames = terrace::test::status_frame(20);
  frames.resize(80 << 10);
  protocol::frame_header header = protocol::read_header(frames.data());
  header.length = static_cast<uint32_t>(frames.size());
  auto written = protocol::write_header(header);
  std::copy(written.begin(), written.end(), frames.begin());
  auto cancel =
      terrace::test::frame_with(kind::cancel, 21, [](auto& body) { return wire::CreateCancel(body, 20); });
  frames.insert(frames.end(), cancel.begin(), cancel.end());
  return frames;
}

TEST_F(ConnectionWithoutRoom, WhatIsBehindALargeFrameIsReadOnceThereIsRoom) {
  ASSERT_TRUE(client->send(large_request_and_cancel()));
  settle();
  EXPECT_FALSE(client->next());
  memory().give_back_objects(others);
  EXPECT_EQ(answer().id, 20u);
  EXPECT_EQ(answer().id, 21u);
}

TEST_F(ConnectionWithoutRoom, TheEndOfTheStreamIsNoticedBehindALargeFrame) {
  ASSERT_TRUE(client->send(large_request_and_cancel()));
  settle();
  client->close();
  settle();
  EXPECT_EQ(environment->clients->size(), 0u);
  memory().give_back_objects(others);
}

// ---- memory that there is not ----

/// A connection whose next look at the clock finds no memory, as any step of a request may.
struct ConnectionWithoutMemory : Connection {
  bool none = false;
  size_t looks = 0;

  void SetUp() override {
    environment->limits.region_bytes = 64 * payload; // the fixture's region takes all
    environment->now = [this] {
      ++looks;
      if (std::exchange(none, false))
        throw std::bad_alloc();
      return time;
    };
    ready();
  }
  /// Refused in its second part, after what was being unmapped has been.
  void send_region(uint64_t id) {
    unique_fd memory(::memfd_create("region", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(memory.get(), payload), 0);
    ASSERT_TRUE(client->send(
        kind::register_region, id,
        [](auto& body) { return wire::CreateRegisterRegion(body, wire::RegionKind::memfd, payload); },
        memory.get()));
  }
};

TEST_F(ConnectionWithoutMemory, ALaterPartOfARequestThatFindsNoneIsAnAnswer) {
  send_region(20);
  for (size_t before = looks, jobs = 0; looks == before && jobs < 1000; ++jobs)
    run_some(1);
  EXPECT_FALSE(client->next()) << "it waits for its second part";
  none = true;
  auto refused = answer();
  EXPECT_FALSE(none);
  EXPECT_EQ(refused.id, 20u);
  EXPECT_EQ(refused.code(), errc::no_space);
  EXPECT_NE(refused.text().find("no memory to serve this"), std::string::npos) << refused.text();
  send_region(21);
  EXPECT_EQ(answer().code(), errc::busy) << "the connection goes on";
}

TEST_F(ConnectionWithoutMemory, ARequestThatCannotBeginIsAnswered) {
  none = true;
  send_status(20);
  auto refused = answer();
  EXPECT_EQ(refused.id, 20u);
  EXPECT_EQ(refused.code(), errc::no_space) << refused.text();
  send_status(20);
  EXPECT_EQ(answer().code(), errc::ok) << "the connection goes on";
}

/// Requests that are answered after other actors have been asked.
TEST_F(ConnectionWithoutMemory, AnAnswerThatFindsNoneIsAnErrorOfItsRequest) {
  send_store(10, 0, 4);
  ASSERT_EQ(answer().code(), errc::ok);
  auto sent = [&](kind verb, auto&& make) { ASSERT_TRUE(client->send(verb, 20, make)); };
  auto runs = [](flatbuffers::FlatBufferBuilder& body) {
    return body.CreateVectorOfStructs(std::vector{wire::Run(0, payload, 0, 1)});
  };
  const std::map<std::string, std::function<void()>> verbs{
      {"status", [&] { sent(kind::status, [](auto& body) { return wire::CreateStatus(body); }); }},
      {"policies", [&] { sent(kind::policies, [](auto& body) { return wire::CreatePolicies(body); }); }},
      {"lookup",
       [&] {
         sent(kind::lookup, [&](flatbuffers::FlatBufferBuilder& body) {
           auto chunks = prefix(body, 0, 1);
           return wire::CreateLookup(body, space, chunks, true);
         });
       }},
      {"load",
       [&] {
         sent(kind::load, [&](flatbuffers::FlatBufferBuilder& body) {
           auto chunks = prefix(body, 0, 1);
           return wire::CreateLoad(body, space, chunks, 0, 0, 0, region, runs(body));
         });
       }},
      {"a foreign lease",
       [&] {
         sent(kind::load, [&](flatbuffers::FlatBufferBuilder& body) {
           auto lease = body.CreateVector(std::vector<uint8_t>(16, 9));
           return wire::CreateLoad(body, 0, 0, lease, 0, 0, region, runs(body));
         });
       }},
      {"store",
       [&] {
         sent(kind::store, [&](flatbuffers::FlatBufferBuilder& body) {
           auto chunks = prefix(body, 0, 1);
           return wire::CreateStore(body, space, chunks, 0, 0, region, runs(body));
         });
       }},
      {"reserve",
       [&] {
         sent(kind::reserve, [&](flatbuffers::FlatBufferBuilder& body) {
           auto chunks = prefix(body, 5, 1);
           return wire::CreateReserve(body, space, chunks);
         });
       }},
  };
  for (const auto& [name, request] : verbs) {
    SCOPED_TRACE(name);
    request();
    size_t jobs = 0;
    for (size_t before = looks; looks == before && jobs < 1000; ++jobs)
      run_some(1);
    ASSERT_FALSE(client->next()) << "it was answered at once";
    none = true;
    auto refused = answer();
    EXPECT_FALSE(none);
    EXPECT_EQ(refused.id, 20u);
    EXPECT_EQ(refused.code(), errc::no_space) << refused.text();
    send_status(21);
    EXPECT_EQ(answer().code(), errc::ok) << "the connection goes on";
  }
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
