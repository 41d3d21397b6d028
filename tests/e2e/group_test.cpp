// Who may connect, how many may, and what isolated groups get.
#include "tests/support/child_process.hpp"
#include "tests/support/raw_client.hpp"
#include "workload.hpp"

#include <unistd.h>

namespace terrace::e2e {
namespace {

using test::child_process;
using test::child_voice;
using test::frame_with;
using test::raw_client;

/// Restarts the daemon with [[listen]] sections that name its own paths.
void listen_as(daemon_under_test& daemon, const std::string& sections) {
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.configure({.listen = sections});
  daemon.start();
}

std::string listen_at(const std::string& path, const std::string& more) {
  return "[[listen]]\npath = \"" + path + "\"\n" + more;
}

class Isolated : public ::testing::Test {
 protected:
  void SetUp() override { listen_as(daemon_, listen_at(daemon_.socket(), "isolated = true\n")); }
  daemon_under_test daemon_;
};

TEST_F(Isolated, ClientsStoreAndLoadThroughRegions) {
  tester first(daemon_.socket());
  tester second(daemon_.socket());
  auto chain = chain_of(1, 8);
  EXPECT_EQ(first.store(chain), 8U);
  EXPECT_EQ(second.load_and_check(chain), 8U);
  auto found = second.lookup(chain, true);
  auto request = second.load_of(chain);
  request.what = {};
  request.lease = found.held.id();
  auto loaded = second->load(request, patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 8U);
  EXPECT_FALSE(second->daemon().has("mapped_arena"));
}

TEST_F(Isolated, NothingIsMapped) {
  tester client(daemon_.socket());
  auto chain = chain_of(1, 2);
  client.store(chain);
  auto found = client.lookup(chain, true);
  auto places = client->read_lease(found.held.id(), {}, patiently());
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().code, errc::denied);
  client::reserve_request request;
  request.in = client.space();
  auto fresh = chain_of(2, 2);
  request.what = client::prefix::of_digests(fresh);
  auto reserved = client->reserve(request, patiently());
  ASSERT_FALSE(reserved);
  EXPECT_EQ(reserved.error().code, errc::denied);
  raw_client raw(daemon_.socket());
  ASSERT_TRUE(raw.greet());
  for (uint32_t segment : {0U, 1U, 0xffffffffU}) {
    raw.send(frame_with(protocol::kind::map_segment, 2,
                        [&](auto& body) { return wire::CreateMapSegment(body, segment); }));
    auto said = raw.receive();
    ASSERT_TRUE(said && said->is_error());
    EXPECT_EQ(said->code(), errc::denied);
  }
}

TEST_F(Isolated, HashesThatCollideAreRefused) {
  tester client(daemon_.socket());
  auto spec = test_space();
  spec.algorithm = client::hash_algorithm::xxh3_128;
  auto opened = client->open_space(spec, patiently());
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text.find("xxh3_128"), std::string::npos) << opened.error().text;
  EXPECT_EQ(client.store(chain_of(1, 1)), 1U);
}

TEST(Admission, UserThatIsNotListedIsTurnedAwayWithAReason) {
  daemon_under_test daemon;
  listen_as(daemon,
            listen_at(daemon.socket(), "uids = [" + std::to_string(::getuid() + 1) + "]\nmode = \"0666\"\n"));
  raw_client refused(daemon.socket());
  auto said = refused.receive();
  ASSERT_TRUE(said && said->is_error());
  EXPECT_EQ(said->code(), errc::denied);
  EXPECT_NE(said->text().find("uids"), std::string::npos) << said->text();
  EXPECT_FALSE(refused.receive());
  auto connected = client::connection::connect({.path = daemon.socket()}, patiently());
  EXPECT_FALSE(connected);
  EXPECT_TRUE(daemon.await_log("refused uid"));
}

TEST(Admission, UserThatIsListedIsServed) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can become another user";
  constexpr uid_t nobody = 65534;
  daemon_under_test daemon;
  listen_as(daemon, listen_at(daemon.socket(), "uids = [65534]\nmode = \"0666\"\n"));
  child_process user([&](const child_voice&) {
    if (::setuid(nobody) != 0)
      return 2;
    auto connected = client::connection::connect({.path = daemon.socket()}, patiently());
    return connected ? 0 : 1;
  });
  EXPECT_EQ(user.wait(), 0);
}

TEST(Admission, NoMoreConnectionsThanTheConfigurationAllows) {
  daemon_under_test daemon({.connection = "connections_max = 2\n"});
  tester first(daemon.socket(), "first");
  raw_client second(daemon.socket());
  ASSERT_TRUE(second.greet());
  raw_client third(daemon.socket());
  ASSERT_TRUE(third.send(test::hello_frame()));
  auto said = third.receive();
  ASSERT_TRUE(said && said->is_error());
  EXPECT_EQ(said->code(), errc::busy);
  EXPECT_NE(said->text().find("connections_max"), std::string::npos) << said->text();
  EXPECT_FALSE(third.receive());
  // The daemon forgets the connection shortly after its end.
  for (int asked = 0; asked < 10'000 && first.status().clients.size() > 2; ++asked) {
  }
  EXPECT_EQ(first.status().clients.size(), 2U);
  // The socket is shut down, not closed: the end of the stream then shows that the daemon has closed its
  // side.
  ::shutdown(second.descriptor(), SHUT_WR);
  EXPECT_FALSE(second.receive());
  // The daemon forgets the connection shortly after that; each status is a round trip through it.
  for (int asked = 0; asked < 10'000 && first.status().clients.size() > 1; ++asked) {
  }
  raw_client next(daemon.socket());
  EXPECT_TRUE(next.greet());
}

} // namespace
} // namespace terrace::e2e
