// The daemon notices a client's end, its releases and its presence, whatever else happens.
#include "tests/support/raw_client.hpp"
#include "workload.hpp"

#include <sys/socket.h>

namespace terrace::e2e {
namespace {

using namespace std::chrono_literals;
using test::raw_client;

/// A client that holds all of host memory under leases. A request that waits for a lookup of another client
/// uses its only credit.
struct OutOfCredit : ::testing::Test {
  daemon_under_test daemon{{.host_bytes = 8 * mebibyte, .connection = "group_bytes = \"16MiB\"\n"}};
  static constexpr uint32_t credit = 4; // a request for each 4 MiB
  std::optional<tester> holder;
  std::vector<client::lease> held;
  std::vector<client::ticket<client::lookup_result>> waits;

  static lookup_id awaited() {
    lookup_id id;
    id.bytes.fill(1);
    return id;
  }

  void SetUp() override {
    holder.emplace(daemon.socket(), "holder");
    held = occupy(*holder, 1, objects_in(8 * mebibyte));
    for (uint32_t i = 0; i < credit; ++i) {
      auto submitted = (*holder)->async().await_lookup(awaited(), client::within(60s));
      ASSERT_TRUE(submitted) << submitted.error().text;
      waits.push_back(std::move(*submitted));
    }
    tester other(daemon.socket(), "other");
    auto until = patiently();
    while (!has_no_credit(other) && std::chrono::steady_clock::now() < *until) {
    }
  }

  bool has_no_credit(tester& other) {
    for (const auto& client : other.status().clients)
      if (client.name == "holder")
        return client.requests_in_flight >= credit;
    return false;
  }
};

TEST_F(OutOfCredit, AClosedSocketGivesBackItsLeasesAtOnce) {
  tester other(daemon.socket(), "other");
  auto before = std::chrono::steady_clock::now();
  ::shutdown((*holder)->descriptor(), SHUT_RDWR);
  EXPECT_TRUE(stored_when_free(other, chain_of(2000, 1)));
  EXPECT_EQ(leased_objects(other, 0), 0U);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 20s) << "only the deadline of its request ended it";
}

TEST_F(OutOfCredit, AReleaseIsServedAndTheRequestGoesOn) {
  tester other(daemon.socket(), "other");
  auto before = std::chrono::steady_clock::now();
  held.clear(); // each sends a release
  EXPECT_EQ(leased_objects(other, 0), 0U);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 20s) << "they waited for its request";
  auto chain = chain_of(1, 1);
  auto request = other.lookup_of(chain);
  request.id = awaited();
  ASSERT_TRUE(other->lookup(request, patiently()));
  for (auto& each : waits) {
    auto heard = each.wait(client::within(20s));
    EXPECT_TRUE(heard) << heard.error().text;
  }
}

/// Puts frames into one message: a client sends them all before it reads anything.
void add(test::frame_bytes& to, const test::frame_bytes& frame) {
  to.insert(to.end(), frame.begin(), frame.end());
}

test::frame_bytes cancel_frame(uint64_t id, uint64_t request) {
  return test::frame_with(protocol::kind::cancel, id,
                          [&](auto& body) { return wire::CreateCancel(body, request); });
}

test::frame_bytes on_lease(protocol::kind kind, uint64_t id, const lease_id& lease) {
  return test::frame_with(kind, id, [&](auto& body) {
    auto named = body.CreateVector(lease.bytes.data(), lease.bytes.size());
    wire::ReadLeaseBuilder made(body); // only `Release` has this field as well
    made.add_lease(named);
    return made.Finish();
  });
}

/// Returns a request that waits and is as long as a frame may be: padding follows the table.
test::frame_bytes waiting_frame(uint64_t id) {
  auto frame = test::frame_with(protocol::kind::await_lookup, id, [](auto& body) {
    return wire::CreateAwaitLookup(body, body.CreateVector(std::vector<uint8_t>(16, 1)), 60'000);
  });
  frame.resize(protocol::frame_bytes_max);
  protocol::frame_header header = protocol::read_header(frame.data());
  header.length = static_cast<uint32_t>(frame.size());
  auto written = protocol::write_header(header);
  std::copy(written.begin(), written.end(), frame.begin());
  return frame;
}

/// A client with one request whose bytes use up the credit, and others that wait behind it.
struct BehindWaiting : ::testing::Test {
  daemon_under_test daemon{{.host_bytes = 16 * mebibyte, .connection = "group_bytes = \"512MiB\"\n"}};
  tester holder{daemon.socket(), "holder"};
  client::lookup_result found;
  raw_client client{daemon.socket()};

  void SetUp() override {
    auto chain = chain_of(1, 2);
    holder.store(chain);
    found = holder.lookup(chain, true);
    ASSERT_TRUE(client.greet());
    ASSERT_TRUE(client.send(on_lease(protocol::kind::read_lease, 2, found.held.id())));
    auto read = client.receive();
    ASSERT_TRUE(read && !read->is_error());
  }
  void send(const std::vector<test::frame_bytes>& frames) {
    test::frame_bytes all;
    for (const auto& each : frames)
      add(all, each);
    ASSERT_TRUE(client.send(all));
  }
  test::received next() {
    auto said = client.receive();
    EXPECT_TRUE(said);
    return said.value_or(test::received{});
  }
};

TEST_F(BehindWaiting, ACancelIsServed) {
  auto before = std::chrono::steady_clock::now();
  send({waiting_frame(3), test::status_frame(4), cancel_frame(5, 3)});
  auto first = next(), second = next(); // answers to a request and to its cancel, in any order
  EXPECT_EQ(first.id + second.id, 8U) << first.id;
  EXPECT_EQ((first.id == 3 ? first : second).code(), errc::cancelled);
  EXPECT_TRUE((first.id == 5 ? first : second).as<wire::CancelAnswer>().found());
  EXPECT_EQ(next().id, 4U) << "then there is credit for it";
  EXPECT_LT(std::chrono::steady_clock::now() - before, 20s);
}

TEST_F(BehindWaiting, AReleaseIsServed) {
  send({waiting_frame(3), test::status_frame(4), on_lease(protocol::kind::release, 5, found.held.id()),
        cancel_frame(6, 3)});
  auto released = next();
  EXPECT_EQ(released.id, 5U);
  EXPECT_FALSE(released.is_error()) << released.text();
}

TEST_F(BehindWaiting, AsManyAsTheCreditMayWaitAndBeCancelled) {
  send({waiting_frame(3), waiting_frame(4), cancel_frame(6, 4)});
  auto ended = next();
  EXPECT_EQ(ended.id, 4U);
  EXPECT_EQ(ended.code(), errc::cancelled) << ended.text();
  EXPECT_TRUE(next().as<wire::CancelAnswer>().found());
}

TEST_F(BehindWaiting, TheEndOfTheStreamEndsAll) {
  send({waiting_frame(3), waiting_frame(4), test::status_frame(5)});
  client.close();
  EXPECT_TRUE(daemon.await_log("closed its socket; objects that it may be reading are kept"));
}

TEST(Handshake, HasADeadline) {
  daemon_under_test daemon({.connection = "request_deadline = \"300ms\"\n"});
  raw_client silent(daemon.socket());
  auto said = silent.receive();
  ASSERT_TRUE(said && said->is_error());
  EXPECT_EQ(said->code(), errc::deadline);
  EXPECT_NE(said->text().find("a third of connection.request_deadline"), std::string::npos) << said->text();
  EXPECT_FALSE(silent.receive()) << "the stream ends after the reason";
}

TEST(Observer, StatusGetsInWhenNoClientDoes) {
  daemon_under_test daemon({.connection = "connections_max = 1\n"});
  tester only(daemon.socket(), "only");
  auto second = client::connection::connect({.path = daemon.socket()}, patiently());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errc::busy);
  for (const char* what : {"status", "policies"}) {
    auto looked = run({program("TERRACE"), what, "--socket", daemon.socket()});
    EXPECT_EQ(looked.exit_code, 0) << looked.err;
  }
}

TEST(Observer, OnlyLooks) {
  daemon_under_test daemon;
  auto looks = client::connection::connect({.path = daemon.socket(), .observes = true}, patiently());
  ASSERT_TRUE(looks);
  EXPECT_TRUE(looks->admin().status(patiently()));
  auto opened = looks->open_space(test_space(), patiently());
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text.find("observes"), std::string::npos) << opened.error().text;
}

TEST(Quarantine, IsNotCountedAmongTheClients) {
  daemon_under_test daemon({.connection = "connections_max = 2\n"});
  auto chain = chain_of(1, 1);
  client::located_objects read; // kept, because this process may be reading there
  {
    tester reader(daemon.socket(), "reader");
    reader.store(chain);
    auto found = reader.lookup(chain, true);
    auto places = reader->read_lease(found.held.id(), {}, patiently());
    ASSERT_TRUE(places);
    read = std::move(*places);
    ::shutdown(reader->descriptor(), SHUT_RDWR);
  }
  ASSERT_TRUE(daemon.await_log("objects that it may be reading are kept"));
  tester second(daemon.socket(), "second");
  tester third(daemon.socket(), "third");
  EXPECT_EQ(third.lookup(chain).found_chunks, 1U);
}

} // namespace
} // namespace terrace::e2e
