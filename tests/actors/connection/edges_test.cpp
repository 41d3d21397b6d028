// The edges of a connection, filled: other actors that do not answer, and clients that ask for more than they may.
#include "connection_fixture.hpp"

#include <functional>
#include <map>
#include <string>

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;
using runtime::io_code;

namespace {

/// An actor in the place of another, which keeps what it is sent and answers nothing.
struct silent_actor {
  std::shared_ptr<size_t> messages = std::make_shared<size_t>(0);
  caf::actor handle;

  explicit silent_actor(caf::actor_system& system) {
    handle = system.spawn([count = messages](caf::event_based_actor* self) -> caf::behavior {
      self->set_default_handler(
          [count](caf::scheduled_actor*, caf::message_view&) -> caf::result<caf::message> {
            ++*count;
            return caf::skip;
          });
      return {[](open_gate) {}};
    });
  }
};

constexpr uint32_t credit = 4;

struct Edges : connection_fixture {
  std::optional<silent_actor> group_stub, policy_stub, host_stub, shadow_stub;
  group_actor former_group;
  policy_actor former_policy;
  tier_actor former_host;

  void SetUp() override {
    environment->limits.credit_requests = credit;
    group->detached = false;
    ready();
    send_store(10, 0, 1); // so that the host tier is not empty
    ASSERT_EQ(answer().code(), errc::ok);
  }
  tier_actor& host() { return const_cast<tier_handle&>(group->tiers().front()).tier; }

  /// From now on nobody answers.
  void silence() {
    former_group = std::exchange(group->group, caf::actor_cast<group_actor>(group_stub.emplace(sys).handle));
    former_policy =
        std::exchange(group->policy, caf::actor_cast<policy_actor>(policy_stub.emplace(sys).handle));
    former_host = std::exchange(group->host, caf::actor_cast<tier_actor>(host_stub.emplace(sys).handle));
    host() = group->host;
  }
  void TearDown() override {
    if (group_stub) {
      for (const auto* stub : {&group_stub, &policy_stub, &host_stub, &shadow_stub})
        if (*stub)
          stop((*stub)->handle);
      group->group = former_group;
      group->policy = former_policy;
      group->host = host() = former_host;
      group->shadow = nullptr;
      group_stub.reset();
      policy_stub.reset();
      host_stub.reset();
      shadow_stub.reset();
      former_group = nullptr;
      former_policy = nullptr;
      former_host = nullptr;
    }
    connection_fixture::TearDown();
  }

  uint32_t in_flight() const { return environment->clients->all().at(0)->requests_in_flight; }
  static std::vector<uint8_t> id_of(uint64_t number) {
    return std::vector<uint8_t>(lookup_id{}.bytes.size(), static_cast<uint8_t>(1 + number));
  }
};

// ---- one per request ----

struct asked {
  std::string name;
  size_t group = 0, policy = 0, host = 0; ///< messages of the requests that the credit allows
  std::function<void(Edges&, uint64_t)> send;
};
void PrintTo(const asked& one, std::ostream* out) { *out << one.name; }

struct OnePerRequest : Edges, ::testing::WithParamInterface<asked> {};

TEST_P(OnePerRequest, AsManyAsTheCreditAllowsWait) {
  silence();
  const asked& what = GetParam();
  for (uint64_t id = 20; id < 20 + 2 * credit + 2; ++id) // as many wait outside the socket
    what.send(*this, id);
  EXPECT_EQ(*group_stub->messages, what.group);
  EXPECT_EQ(*policy_stub->messages, what.policy);
  EXPECT_EQ(*host_stub->messages, what.host);
  EXPECT_EQ(ring.in_flight(io_code::recvmsg), 0u) << "the next one waits in the socket";
  EXPECT_FALSE(client->next());
}

const std::vector<asked> all_asked{
    {"OpenSpace", credit, 0, 0,
     [](Edges& by, uint64_t id) {
       by.send(kind::open_space, id, [&](auto& body) {
         auto pools = body.CreateVector(
             std::vector{wire::CreatePool(body, body.CreateString("kv"), group_fixture::payload)});
         return wire::CreateOpenSpace(body, body.CreateString("m"), 0, body.CreateString("bfloat16"),
                                      body.CreateString("KV_2LTD"), 64, 16, 1, pools,
                                      body.CreateString(std::to_string(id)));
       });
     }},
    {"LoadUnderTheLeaseOfAnother", 1, 0, 0, // it will cost what the lease names: no further request begins
     [](Edges& by, uint64_t id) {
       by.send(kind::load, id, [&](auto& body) {
         auto lease = body.CreateVector(Edges::id_of(id));
         auto runs = body.CreateVectorOfStructs(std::vector{wire::Run(0, group_fixture::payload, 0, 1)});
         return wire::CreateLoad(body, 0, 0, lease, 0, 0, by.region, runs);
       });
     }},
    {"NamedLookup", credit, 0, 0,
     [](Edges& by, uint64_t id) {
       by.send(kind::lookup, id, [&](flatbuffers::FlatBufferBuilder& body) {
         auto chunks = Edges::prefix(body, 0, 1);
         auto name = body.CreateVector(Edges::id_of(id));
         return wire::CreateLookup(body, by.space, chunks, false, 0, 0, 0, name);
       });
     }},
    {"AwaitLookup", credit, 0, 0,
     [](Edges& by, uint64_t id) {
       by.send(kind::await_lookup, id, [&](auto& body) {
         return wire::CreateAwaitLookup(body, body.CreateVector(Edges::id_of(id)));
       });
     }},
    {"Leases", credit, 0, 0,
     [](Edges& by, uint64_t id) {
       by.send(kind::leases, id, [](auto& body) { return wire::CreateLeases(body); });
     }},
    {"Revoke", credit, 0, 0,
     [](Edges& by, uint64_t id) {
       by.send(kind::revoke, id,
               [&](auto& body) { return wire::CreateRevoke(body, body.CreateVector(Edges::id_of(id))); });
     }},
    {"Unpin", credit, 0, 0,
     [](Edges& by, uint64_t id) {
       by.send(kind::unpin, id, [&](flatbuffers::FlatBufferBuilder& body) {
         auto chunks = Edges::prefix(body, id, 1);
         return wire::CreateUnpin(body, by.space, chunks);
       });
     }},
    {"Evict", 0, 0, credit,
     [](Edges& by, uint64_t id) {
       by.send(kind::evict, id, [&](flatbuffers::FlatBufferBuilder& body) {
         auto chunks = Edges::prefix(body, id, 1);
         return wire::CreateEvict(body, by.space, chunks);
       });
     }},
    {"Status", 0, 0, credit, // the tiers first, then the others
     [](Edges& by, uint64_t id) { by.send_status(id); }},
    {"Policies", 0, credit, 0,
     [](Edges& by, uint64_t id) {
       by.send(kind::policies, id, [](auto& body) { return wire::CreatePolicies(body); });
     }},
    {"SetPolicy", 0, credit, 0,
     [](Edges& by, uint64_t id) {
       by.send(kind::set_policy, id,
               [](auto& body) { return wire::CreateSetPolicyDirect(body, "host", "lru"); });
     }},
    {"Clear", credit, 0, 0, // its prompts are forgotten first
     [](Edges& by, uint64_t id) {
       by.send(kind::clear, id, [](auto& body) { return wire::CreateClear(body); });
     }},
    {"Reserve", 0, 0, credit,
     [](Edges& by, uint64_t id) {
       by.send(kind::reserve, id, [&](flatbuffers::FlatBufferBuilder& body) {
         auto chunks = Edges::prefix(body, id, 1);
         wire::ReserveBuilder made(body);
         made.add_space(by.space);
         made.add_prefix(chunks);
         return made.Finish();
       });
     }},
    {"LookupWithALease", 0, 0, credit, [](Edges& by, uint64_t id) { by.send_lookup(id, 0, 1, true); }},
    {"Store", 0, 0, credit, [](Edges& by, uint64_t id) { by.send_store(id, id, 1); }},
    {"Load", 0, 0, credit,
     [](Edges& by, uint64_t id) {
       by.send(kind::load, id, [&](flatbuffers::FlatBufferBuilder& body) {
         auto chunks = Edges::prefix(body, 0, 1);
         auto runs = body.CreateVectorOfStructs(std::vector{wire::Run(0, group_fixture::payload, 0, 1)});
         return wire::CreateLoad(body, by.space, chunks, 0, 0, 0, by.region, runs);
       });
     }},
};
INSTANTIATE_TEST_SUITE_P(Verbs, OnePerRequest, ::testing::ValuesIn(all_asked),
                         [](const auto& one) { return one.param.name; });

TEST_F(Edges, WhatGivesBackMayBeSoMuchMore) {
  silence();
  for (uint64_t id = 20; id < 20 + credit + 2 * protocol::giving_back_requests_max; ++id)
    send(kind::cancel, id,
         [&](auto& body) { return wire::CreateCancel(body, 0, body.CreateVector(id_of(id))); });
  EXPECT_EQ(*group_stub->messages, credit + protocol::giving_back_requests_max);
  EXPECT_EQ(ring.in_flight(io_code::recvmsg), 1u) << "as many wait";
  send_cancel(1000, 20);
  EXPECT_EQ(ring.in_flight(io_code::recvmsg), 0u);
}

// ---- to itself ----

TEST_F(Edges, AsManyPromptsAsTheCreditAllowsAreHashedAtATime) {
  send(kind::open_space, 11, [](auto& body) { // each token is a chunk
    auto pools = body.CreateVector(std::vector{wire::CreatePool(body, body.CreateString("kv"), payload)});
    return wire::CreateOpenSpace(body, body.CreateString("m"), 0, body.CreateString("bfloat16"),
                                 body.CreateString("KV_2LTD"), 1, 1, 1, pools);
  });
  uint32_t long_space = answer().as<wire::OpenSpaceAnswer>().space();
  std::vector<uint8_t> frames;
  for (uint64_t id = 20; id < 20 + credit + 2; ++id) {
    auto one = terrace::test::frame_with(kind::lookup, id, [&](flatbuffers::FlatBufferBuilder& body) {
      auto tokens = body.CreateVector(std::vector<uint32_t>(1'500, 5));
      auto lora = body.CreateString(std::string(250, 'x'));
      wire::PrefixBuilder made(body);
      made.add_tokens(tokens);
      made.add_lora(lora);
      auto chunks = made.Finish();
      return wire::CreateLookup(body, long_space, chunks);
    });
    frames.insert(frames.end(), one.begin(), one.end());
  }
  ring.hold(io_code::sendmsg); // requests stay in flight behind the first answer, which is not sent
  ASSERT_TRUE(client->send(frames));
  for (size_t jobs = 0; jobs < 50 && in_flight() < credit; ++jobs)
    run_some(1);
  EXPECT_EQ(in_flight(), credit) << "each waits for its next slice";
  ring.release(io_code::sendmsg);
  for (uint64_t id = 20; id < 20 + credit + 2; ++id)
    EXPECT_EQ(answer().code(), errc::ok);
}

// ---- once ----

TEST_F(Edges, HelloConfirmsAsManyConnectionsAsItMayNameAndOnce) {
  raw_client first = std::move(*client); // its connection goes on
  silent_actor old(sys);
  auto record = environment->clients->all().at(0);
  auto former = std::exchange(record->actor, caf::actor_cast<connection_actor>(old.handle));
  auto hello_of = [&](size_t resumed) {
    return [this, resumed, id = static_cast<uint64_t>(record->id)](flatbuffers::FlatBufferBuilder& body) {
      auto name = body.CreateString("test");
      auto ids = body.CreateVector(std::vector<uint64_t>(resumed, id));
      auto boot = body.CreateVector(environment->boot.bytes.data(), environment->boot.bytes.size());
      return wire::CreateHello(body, protocol::version, name, ids, boot);
    };
  };
  connect();
  send(kind::hello, 1, hello_of(protocol::resumes_max + 1));
  EXPECT_EQ(answer().code(), errc::bad_request);
  connect();
  send(kind::hello, 1, hello_of(protocol::resumes_max));
  EXPECT_EQ(answer().code(), errc::ok);
  send(kind::hello, 2, hello_of(protocol::resumes_max));
  EXPECT_EQ(answer().code(), errc::bad_request);
  EXPECT_EQ(*old.messages, protocol::resumes_max);
  record->actor = former;
  stop(old.handle);
}

TEST_F(Edges, TheEndOfAConnectionIsToldToItsGroupOnce) {
  silence();
  client->close();
  settle();
  process_ends();
  EXPECT_EQ(environment->clients->size(), 0u);
  EXPECT_EQ(*group_stub->messages, 1u);
}

TEST_F(Edges, ARequestThatEndsEarlyIsSweptOnce) {
  silence();
  send_store(20, 100, 1);
  size_t before = *host_stub->messages;
  for (uint64_t id : {30, 31, 32})
    send_cancel(id, 20);
  EXPECT_EQ(*host_stub->messages, before + 1);
  EXPECT_EQ(*group_stub->messages, 1u);
}

TEST_F(Edges, RequestsThatEndTogetherAreSweptTogether) {
  silence();
  for (uint64_t id : {20, 21, 22})
    send_store(id, id, 1);
  size_t before = *host_stub->messages;
  client->close();
  settle();
  EXPECT_EQ(*host_stub->messages, before + 1);
}

TEST_F(Edges, ThereIsOneOperationOfEachKindInTheRing) {
  silence();
  for (uint64_t id = 20; id < 20 + credit + 2; ++id)
    send_store(id, id, 1, static_cast<uint32_t>(1000 - id)); // each replaces the timer
  EXPECT_LE(ring.in_flight(io_code::recvmsg), 1u);
  EXPECT_LE(ring.in_flight(io_code::sendmsg), 1u);
  EXPECT_LE(ring.in_flight(io_code::poll), 2u);
  EXPECT_EQ(ring.in_flight(io_code::timeout), 1u);
}

// ---- without credit ----

TEST_F(Edges, ShadowsThatAreBehindSkipTheEndOfAnInference) {
  silence();
  group->shadow_gate = std::make_shared<credit_gate>();
  group->shadow = caf::actor_cast<shadow_actor>(shadow_stub.emplace(sys).handle);
  auto end = [](auto& body) { return wire::CreateEndInference(body, 7); };
  send(kind::end_inference, 20, end);
  EXPECT_EQ(answer().code(), errc::ok);
  EXPECT_EQ(*shadow_stub->messages, 1u);
  ASSERT_TRUE(group->shadow_gate->offer(credit_gate::waiting_max - 1)); // other connections' requests
  send(kind::end_inference, 21, end);
  EXPECT_EQ(answer().code(), errc::ok);
  EXPECT_EQ(*shadow_stub->messages, 1u);
  EXPECT_EQ(group->shadow_gate->skipped(), 1u);
}

} // namespace
