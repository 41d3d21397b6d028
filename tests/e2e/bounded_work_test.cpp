// The most expensive legal requests have a bounded cost, and delay nobody for long.
#include "long_prompt.hpp"
#include "tests/support/process_memory.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace terrace::e2e {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// A client that asks for the status again and again; each request is answered.
class bystander {
 public:
  explicit bystander(const std::string& socket)
      : daemon_(client::connection::connect({.path = socket, .name = "bystander"}, patiently()).value()),
        thread_([this] { look(); }) {}
  ~bystander() {
    ended_ = true;
    thread_.join();
  }

 private:
  void look() {
    while (!ended_)
      EXPECT_TRUE(daemon_.admin().status(patiently()));
  }
  client::connection daemon_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

/// A daemon that counts its turns, with one worker, so that nothing runs beside a long turn.
class one_worker {
 public:
  std::string socket() const { return daemon_.socket(); }

  /// Turns that actors of this kind have taken so far. A turn counts when it is over, which may be after its
  /// answer. Others are served between two turns.
  uint64_t turns(const std::string& actor) const {
    std::string line = "terrace_turn_seconds_count{actor=\"" + actor + "\"} ";
    std::string page = test::scrape(port_);
    auto at = page.find(line);
    return at == std::string::npos ? 0 : std::stoull(page.substr(at + line.size()));
  }

 private:
  static daemon_options options(uint16_t port) {
    daemon_options made{.workers = 1, .connection = "group_bytes = \"512MiB\"\n"};
    made.metrics = "127.0.0.1:" + std::to_string(port);
    return made;
  }
  uint16_t port_ = test::free_port();
  daemon_under_test daemon_{options(port_)};
};

/// Turns for a million objects: each has less than 65,536.
constexpr uint64_t turns_for_a_million = 16;

/// Memory figures mean nothing with sanitizers, which keep freed memory and more.
bool memory_says_something() { return !test::sanitized(); }

uint64_t heap_bytes(const daemon_under_test& daemon) { return test::resident_bytes(daemon.pid(), "RssAnon"); }

TEST(BoundedWork, ALongPromptDelaysNobodyAndKeepsItsDeadline) {
  one_worker daemon;
  tester hostile(daemon.socket(), "hostile", object_bytes, small_blocks());
  expensive_prompt prompt;
  client::lookup_request request;
  request.in = hostile.space();
  request.what = prompt.prefix();
  bystander other(daemon.socket());
  auto found = hostile->lookup(request, client::within(500ms));
  // The client's own deadline ends its wait; the daemon's answer follows, and then the next request is
  // served.
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, errc::deadline) << found.error().text;
  EXPECT_TRUE(hostile->admin().status(patiently()));
  EXPECT_TRUE(eventually([&] { return daemon.turns("connection") >= 100; })) << "it is hashed in slices";
}

TEST(BoundedWork, SmallAnswersThatAreNotReadComeOnceEachWhenTheyAre) {
  daemon_under_test daemon({.workers = 1});
  test::raw_client deaf(daemon.socket());
  ASSERT_TRUE(deaf.greet());
  constexpr uint64_t requests = 1'000; // their answers exceed the capacity of a socket
  std::thread writer([&deaf] {
    for (uint64_t id = 2; id < 2 + requests; ++id)
      EXPECT_TRUE(deaf.send(test::status_frame(id)));
  });
  tester other(daemon.socket());
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(other->admin().status(patiently())) << "nobody else waits for it";
  std::vector<int> answers(2 + requests);
  for (uint64_t i = 0; i < requests; ++i) {
    auto one = deaf.receive();
    if (!one || one->id >= answers.size())
      break;
    EXPECT_EQ(one->code(), errc::ok);
    ++answers[one->id];
  }
  ::shutdown(deaf.descriptor(), SHUT_RDWR); // if answers are missing, the writer ends, too
  writer.join();
  EXPECT_EQ(std::count(answers.begin(), answers.end(), 1), static_cast<std::ptrdiff_t>(requests));
}

TEST(BoundedWork, NamesAndIdentifiersHave256Bytes) {
  daemon_under_test daemon;
  for (int which = 0; which < 3; ++which) {
    tester client(daemon.socket());
    std::string name(257, 'l');
    std::vector<uint32_t> tokens(16);
    std::vector<client::item> items{{.identifier = name, .first_token = 0, .tokens = 16}};
    client::lookup_request request;
    request.in = client.space();
    request.what = client::prefix::of_tokens(tokens);
    if (which == 0)
      request.what.lora = name;
    else if (which == 1)
      request.what.salt = name;
    else
      request.what.items = items;
    auto found = client->lookup(request, patiently());
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().text.find("256"), std::string::npos) << found.error().text;
  }
}

TEST(BoundedWork, AMillionObjectsOfAnInferenceDelayNobody) {
  one_worker daemon;
  auto spec = test_space();
  spec.world_size = 64;
  tester hostile(daemon.socket(), "hostile", object_bytes, spec);
  auto chain = chain_of(1, 16'384);
  client::lookup_request request;
  request.in = hostile.space();
  request.what = client::prefix::of_digests(chain);
  request.lease = true;
  bystander other(daemon.socket());
  uint64_t before = daemon.turns("policy");
  for (uint64_t inference = 1; inference <= 4; ++inference) {
    request.options.inference = inference;
    auto found = hostile->lookup(request, patiently());
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_EQ(found->requested_chunks, chain.size());
    EXPECT_EQ(found->found_chunks, 0U);
  }
  // The policy answers while it records the accesses.
  EXPECT_TRUE(hostile->admin().set_policy("host", "lru", patiently()));
  EXPECT_TRUE(eventually([&] { return daemon.turns("policy") - before >= 4 * turns_for_a_million; }));
}

/// If only states count, the whole prefix is searched and planned, although nothing is there.
TEST(BoundedWork, AMillionStatesThatNobodyStoredDelayNobody) {
  one_worker daemon;
  auto spec = test_space();
  spec.world_size = 64;
  spec.pools[0].rule = client::hit_rule::trailing_chunks;
  spec.pools[0].trailing = 1;
  tester hostile(daemon.socket(), "hostile", object_bytes, spec);
  hostile.store(chain_of(2, 1)); // otherwise the tier is empty and not searched
  auto chain = chain_of(1, 16'384);
  bystander other(daemon.socket());
  uint64_t before = daemon.turns("lookup");
  for (bool lease : {false, true}) {
    auto found = hostile->lookup(
        {.in = hostile.space(), .what = client::prefix::of_digests(chain), .lease = lease}, patiently());
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_EQ(found->requested_chunks, chain.size());
    EXPECT_EQ(found->found_chunks, 0U);
  }
  EXPECT_TRUE(eventually([&] { return daemon.turns("lookup") - before >= 2 * turns_for_a_million; }));
}

/// Each request takes ten times what all requests of the trust group may take together.
TEST(BoundedWork, RequestsLargerThanTheGroupsBoundAreServedOneByOne) {
  daemon_under_test daemon(daemon_options{.connection = "group_bytes = \"16MiB\"\n"});
  auto spec = test_space();
  spec.world_size = 64;
  auto chain = chain_of(1, 16'384);
  std::vector<std::thread> clients;
  std::atomic<size_t> answered{0};
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&] {
      tester client(daemon.socket(), "large", object_bytes, spec);
      client::lookup_request request;
      request.in = client.space();
      request.what = client::prefix::of_digests(chain);
      request.lease = true;
      for (int n = 0; n < 4; ++n)
        answered += client->lookup(request, patiently()).has_value();
    });
  for (auto& each : clients)
    each.join();
  EXPECT_EQ(answered, 16U);
}

/// A question is answered for the leading part, and what would move bytes is refused.
TEST(BoundedWork, OfMoreObjectsThanARequestMayHaveALookupServesTheLeadingPart) {
  constexpr uint32_t ranks = 64;
  daemon_under_test daemon(daemon_options{.host_bytes = 2 * ranks * object_bytes});
  auto chain = chain_of(1, 1'048'576 / ranks + 1);
  auto spec = test_space();
  spec.world_size = ranks;
  for (spec.rank = 0; spec.rank < ranks; ++spec.rank)
    tester(daemon.socket(), "rank", object_bytes, spec).store({chain.front()});
  spec.rank = 0;
  tester client(daemon.socket(), "client", object_bytes, spec);
  EXPECT_EQ(client.lookup(chain).found_chunks, 1U);
  auto brought =
      client->prefetch({.in = client.space(), .what = client::prefix::of_digests(chain)}, patiently());
  ASSERT_FALSE(brought);
  EXPECT_EQ(brought.error().code, errc::bad_request);
  EXPECT_NE(brought.error().text.find("1048576"), std::string::npos) << brought.error().text;
  EXPECT_TRUE(client->admin().status(patiently())) << "the connection goes on";
}

/// A lease on few objects names many if most chunks need no state.
TEST(BoundedWork, MoreLocationsThanAnAnswerHoldsAreRefusedWithTheBound) {
  constexpr size_t chunks = 7'000, states = 100;
  daemon_under_test daemon(daemon_options{.host_bytes = 96 * mebibyte});
  auto spec = test_space();
  spec.dtype = "uint8";
  spec.pools = {{.name = "kv", .object_bytes = 4096},
                {.name = "state",
                 .rule = client::hit_rule::trailing_chunks,
                 .trailing = 1,
                 .tensors = {{.layers = states, .hidden = 1}},
                 .layer_groups = states}};
  tester client(daemon.socket(), "client", chunks * 4096, spec);
  auto chain = chain_of(1, chunks);
  auto store = client.store_of(chain, {0, 1});
  std::vector<client::run> runs;
  for (size_t i = 0; i < chunks; ++i)
    runs.push_back({.offset = i * 4096, .bytes = 4096});
  std::vector<uint8_t> pools{0};
  store.range = {};
  store.runs = runs;
  store.pools = pools;
  ASSERT_TRUE(client->store(store, patiently()));
  runs.clear();
  pools.clear();
  for (uint8_t pool = 1; pool <= states; ++pool) {
    pools.push_back(pool);
    runs.push_back({.offset = pool * 4096U, .bytes = client->pools_of(client.space())[pool].object_bytes});
  }
  store.range = {chunks - 1, 1};
  store.runs = runs;
  store.pools = pools;
  auto stored = client->store(store, patiently());
  ASSERT_TRUE(stored) << stored.error().text;
  auto leased = client.lookup(chain, true);
  ASSERT_EQ(leased.found_chunks, chunks);

  auto all = client->read_lease(leased.held.id(), {}, patiently());
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, errc::bad_request);
  EXPECT_NE(all.error().text.find("707000 objects were asked for: expected at most 698880"),
            std::string::npos)
      << all.error().text;
  auto most = client->read_lease(leased.held.id(), {0, 6919}, patiently());
  EXPECT_TRUE(most) << most.error().text;
  auto last = client->read_lease(leased.held.id(), {chunks - 1, 1}, patiently());
  ASSERT_TRUE(last) << last.error().text;
  EXPECT_EQ(last->objects.size(), 1 + states);
}

/// A client that asks for the locations of many objects again and again, and reads no answer.
class deaf_client {
 public:
  deaf_client(const std::string& socket, const lease_id& lease, size_t requests)
      : socket_(socket), requests_(requests) {
    EXPECT_TRUE(socket_.greet());
    std::vector<uint8_t> frames;
    for (size_t i = 0; i < requests; ++i) {
      auto one = test::frame_with(protocol::kind::read_lease, 2 + i, [&](auto& body) {
        return wire::CreateReadLease(body, body.CreateVector(lease.bytes.data(), lease.bytes.size()));
      });
      frames.insert(frames.end(), one.begin(), one.end());
    }
    EXPECT_TRUE(socket_.send(frames));
  }
  size_t answers() {
    size_t count = 0;
    while (count < requests_ && socket_.receive())
      ++count;
    return count;
  }

 private:
  test::raw_client socket_;
  size_t requests_;
};

/// A lease on 8,192 objects of 4 KiB: the answer with their locations has 192 KiB.
struct ManyLocations : ::testing::Test {
  static constexpr size_t objects = 8'192;
  std::optional<daemon_under_test> daemon;
  std::optional<tester> owner;
  client::lookup_result leased;
  std::vector<digest> chain = chain_of(1, objects);

  void start(const std::string& connection) {
    daemon.emplace(daemon_options{.workers = 1, .host_bytes = 96 * mebibyte, .connection = connection});
    auto spec = test_space();
    spec.pools[0].object_bytes = 4096;
    owner.emplace(daemon->socket(), "owner", objects * 4096, spec);
    std::vector<client::run> runs;
    for (size_t i = 0; i < objects; ++i) {
      runs.push_back({.offset = i * 4096, .bytes = 4096});
      owner->memory().bytes()[i * 4096] = static_cast<uint8_t>(i);
      owner->memory().bytes()[i * 4096 + 1] = static_cast<uint8_t>(i >> 8);
    }
    auto request = owner->store_of(chain, {0, 1});
    request.range = {};
    request.runs = runs;
    auto stored = (*owner)->store(request, patiently());
    ASSERT_TRUE(stored) << stored.error().text;
    ASSERT_EQ(stored->stored_chunks, objects);
    leased = owner->lookup(chain, true);
    ASSERT_EQ(leased.found_chunks, objects);
  }
};

TEST_F(ManyLocations, AreToldInOrder) {
  start("");
  auto told = (*owner)->read_lease(leased.held.id(), {}, patiently());
  ASSERT_TRUE(told) << told.error().text;
  ASSERT_EQ(told->objects.size(), objects);
  for (size_t i = 0; i < objects; ++i) {
    ASSERT_EQ(told->objects[i].size(), 4096U);
    EXPECT_EQ(told->objects[i][0], static_cast<uint8_t>(i)) << i;
    EXPECT_EQ(told->objects[i][1], static_cast<uint8_t>(i >> 8)) << i;
  }
}

/// Sends a read of the lease together with a request that ends the lease, and returns the number of answers
/// to both.
size_t answers_to_both(test::raw_client& socket, const lease_id& lease, std::vector<uint8_t> end) {
  auto frames = test::frame_with(protocol::kind::read_lease, 2, [&](auto& body) {
    return wire::CreateReadLease(body, body.CreateVector(lease.bytes.data(), lease.bytes.size()));
  });
  frames.insert(frames.end(), end.begin(), end.end());
  EXPECT_TRUE(socket.send(frames));
  size_t count = 0;
  while (count < 2 && socket.receive())
    ++count;
  return count;
}

TEST_F(ManyLocations, AReadThatEndsEarlyIsAnsweredAndHarmsNobody) {
  start("");
  {
    test::raw_client reader(daemon->socket());
    ASSERT_TRUE(reader.greet());
    auto release = test::frame_with(protocol::kind::release, 3, [&](auto& body) {
      return wire::CreateRelease(body, body.CreateVector(leased.held.id().bytes.data(), 16));
    });
    EXPECT_EQ(answers_to_both(reader, leased.held.id(), release), 2U);
    auto cancel =
        test::frame_with(protocol::kind::cancel, 4, [&](auto& body) { return wire::CreateCancel(body, 2); });
    EXPECT_EQ(answers_to_both(reader, leased.held.id(), cancel), 2U);
    ASSERT_TRUE(reader.send(test::frame_with(protocol::kind::read_lease, 5, [&](auto& body) {
      return wire::CreateReadLease(body, body.CreateVector(leased.held.id().bytes.data(), 16));
    })));
  } // the connection ends meanwhile
  auto told = (*owner)->read_lease(leased.held.id(), {}, patiently());
  ASSERT_TRUE(told) << told.error().text;
  EXPECT_EQ(told->objects.size(), objects);
}

TEST_F(ManyLocations, WhatFollowsAReleaseFindsItsRoom) {
  start("");
  for (int round = 0; round < 4; ++round) {
    ASSERT_TRUE((*owner)->read_lease(leased.held.id(), {}, patiently()));
    leased.held.release(); // host memory is too small for both
    std::vector<digest> next = chain_of(100 + static_cast<uint64_t>(round), objects);
    std::vector<client::run> runs;
    for (size_t i = 0; i < objects; ++i)
      runs.push_back({.offset = i * 4096, .bytes = 4096});
    auto request = owner->store_of(next, {0, 1});
    request.range = {};
    request.runs = runs;
    auto stored = (*owner)->store(request, patiently());
    ASSERT_TRUE(stored) << stored.error().text;
    EXPECT_EQ(stored->stored_chunks, objects);
    leased = owner->lookup(next, true);
    EXPECT_EQ(leased.found_chunks, objects);
  }
}

TEST_F(ManyLocations, AnswersThatAreNotReadUseUpCredit) {
  start("group_bytes = \"512MiB\"\n");
  uint64_t before = heap_bytes(*daemon);
  deaf_client deaf(daemon->socket(), leased.held.id(),
                   256); // 48 MiB of answers, and as much for their objects
  auto status = owner->status();
  for (int i = 0; i < 200; ++i)
    status = owner->status(); // after these round trips the daemon has done all it does
  if (memory_says_something()) {
    EXPECT_LT(heap_bytes(*daemon) - before, 40 * mebibyte);
  }
  EXPECT_EQ(deaf.answers(), 256U) << "they wait, none is lost";
}

TEST_F(ManyLocations, AllConnectionsOfAGroupTogetherHaveABound) {
  start("group_bytes = \"16MiB\"\nrequest_deadline = \"10m\"\n"); // no client is ended for not reading
  uint64_t before = heap_bytes(*daemon);
  const uint32_t requests = memory_says_something() ? 256 : 32; // 48 MiB for each client, or for all
  std::vector<std::unique_ptr<deaf_client>> deaf;
  for (int i = 0; i < 8; ++i)
    deaf.push_back(std::make_unique<deaf_client>(daemon->socket(), leased.held.id(), requests));
  for (int i = 0; i < 200; ++i)
    owner->status(); // the owner is served all the same
  if (memory_says_something()) {
    EXPECT_LT(heap_bytes(*daemon) - before, 64 * mebibyte);
  }
  for (auto& each : deaf)
    EXPECT_EQ(each->answers(), requests);
  deaf.clear();
  if (!memory_says_something())
    return;
  EXPECT_TRUE(eventually([&] {
    owner->status();
    return heap_bytes(*daemon) < before + 16 * mebibyte;
  })) << "memory goes back to the kernel";
}

} // namespace
} // namespace terrace::e2e
