// A connection over a socket pair, with the simulated ring and a clock that the test moves.
#pragma once

#include "actors/connection/connection.hpp"

#include "environment.hpp"
#include "group_fixture.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/runtime_fixture.hpp"

#include <sys/eventfd.h>
#include <sys/mman.h>

namespace terrace::actors::test {

using protocol::kind;
using terrace::test::raw_client;
using terrace::test::received;

struct connection_fixture : group_fixture {
  std::shared_ptr<connection_environment> environment;
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
  std::shared_ptr<unique_fd> process = std::make_shared<unique_fd>(::eventfd(0, EFD_CLOEXEC)); ///< its pidfd
  std::optional<raw_client> client;
  std::vector<std::string> log;
  uint64_t connections = 0;
  uint32_t space = 0;
  uint32_t region = 0;
  uid_t uid = 0; ///< of the next client

  connection_fixture() {
    start({.host_objects = 8});
    environment = environment_of(group, probes, log);
    environment->limits.credit_requests = 2;
    environment->started = time;
    environment->now = [this] { return time; };
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
    ASSERT_TRUE(client->send(what, id, std::forward<F>(make), descriptor));
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

} // namespace terrace::actors::test
