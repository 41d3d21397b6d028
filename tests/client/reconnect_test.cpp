#include "scripted_daemon.hpp"

using namespace terrace;
using namespace terrace::client;
using namespace terrace::client::test;

namespace {

connection connect(const scripted_daemon& daemon) {
  auto made = connection::connect({.path = daemon.path()});
  EXPECT_TRUE(made) << made.error().text;
  return std::move(*made);
}

} // namespace

TEST(Reconnect, OpensSpacesAndRegistersRegionsAnew) {
  scripted_daemon daemon(std::vector<script>{[](peer& client) {
                                               client.welcome({.boot = 1});
                                               client.answer_open_space(5);
                                               client.answer_register_region(6);
                                             },
                                             [](peer& client) {
                                               auto hello = client.welcome({.boot = 2});
                                               client.answer_open_space(50);
                                               client.answer_register_region(60);
                                               auto asked = client.expect(kind::store);
                                               EXPECT_EQ(asked.as<wire::Store>().space(), 50U);
                                               EXPECT_EQ(asked.as<wire::Store>().region(), 60U);
                                               client.answer(asked, [](body_builder& body) {
                                                 return wire::CreateStoreAnswer(body, 1, 0, 4096);
                                               });
                                               client.drain();
                                             }});
  auto connected = connect(daemon);
  auto space = connected.open_space(some_space());
  ASSERT_FINE(space);
  auto memory = region::create("test", 4096);
  auto registered = connected.register_region(*memory);
  ASSERT_FINE(registered);
  EXPECT_FAILS(connected.admin().status(), errc::gone, "the daemon is gone");
  EXPECT_FALSE(connected.alive());
  auto same = connected.reconnect();
  ASSERT_FINE(same);
  EXPECT_FALSE(*same) << "it has booted anew";
  EXPECT_TRUE(connected.alive());
  auto digests = some_digests(1);
  std::vector<run> runs{{0, 4096}};
  EXPECT_TRUE(connected.store(
      {.in = *space, .what = prefix::of_digests(digests), .region = &*registered, .runs = runs}));
}

TEST(Reconnect, TellsTheSameDaemonWhatNobodyTouchesAnyMore) {
  scripted_daemon daemon(
      std::vector<script>{[](peer& client) { client.welcome({.boot = 1, .connection = 7}); },
                          [](peer& client) {
                            auto hello = client.welcome({.boot = 1, .connection = 8});
                            const auto& table = hello.as<wire::Hello>();
                            ASSERT_NE(table.resumes(), nullptr);
                            ASSERT_EQ(table.resumes()->size(), 1U);
                            EXPECT_EQ(table.resumes()->Get(0), 7U);
                            EXPECT_EQ(table.resumes_boot()->Get(0), 1);
                          }});
  auto connected = connect(daemon);
  EXPECT_FAILS(connected.admin().status(), errc::gone, "gone");
  auto same = connected.reconnect();
  ASSERT_FINE(same);
  EXPECT_TRUE(*same);
  EXPECT_EQ(connected.daemon().connection, connection_id{8});
}

TEST(Reconnect, KeepsQuietAboutAConnectionUnderWhichALeaseIsStillHeld) {
  scripted_daemon daemon(std::vector<script>{[](peer& client) { client.welcome({.connection = 7}); },
                                             [](peer& client) {
                                               auto hello = client.welcome({.connection = 8});
                                               EXPECT_EQ(hello.as<wire::Hello>().resumes(), nullptr);
                                             },
                                             [](peer& client) {
                                               auto hello = client.welcome({.connection = 9});
                                               ASSERT_NE(hello.as<wire::Hello>().resumes(), nullptr);
                                               EXPECT_EQ(hello.as<wire::Hello>().resumes()->size(), 2U);
                                             }});
  auto connected = connect(daemon);
  auto held = connected.adopt(lease_of(1));
  EXPECT_FAILS(connected.admin().status(), errc::gone, "gone");
  ASSERT_FINE(connected.reconnect());
  held.release(); // belongs to an ended connection: nothing is sent
  EXPECT_FAILS(connected.admin().status(), errc::gone, "gone");
  ASSERT_FINE(connected.reconnect());
}

TEST(Reconnect, IsNotTriedBeforeItIsDue) {
  connection connected = [] {
    scripted_daemon daemon(std::vector<script>{[](peer& client) { client.welcome(); }});
    auto made = connection::connect({.path = daemon.path(),
                                     .backoff_least = std::chrono::hours(1000),
                                     .backoff_most = std::chrono::hours(1000)});
    EXPECT_TRUE(made);
    return std::move(*made);
  }();
  EXPECT_FAILS(connected.admin().status(), errc::gone, "gone");
  EXPECT_FAILS(connected.reconnect(), errc::gone, "cannot connect to a daemon");
  EXPECT_FAILS(connected.reconnect(), errc::gone, "not due yet");
  EXPECT_FAILS(connected.admin().status(), errc::gone, "gone");
}

TEST(Reconnect, OfALivingConnectionDoesNothing) {
  scripted_daemon daemon(std::vector<script>{[](peer& client) {
    client.welcome();
    client.drain();
  }});
  auto connected = connect(daemon);
  auto same = connected.reconnect();
  ASSERT_FINE(same);
  EXPECT_TRUE(*same);
}

TEST(Reconnect, NeedsAPath) {
  scripted_daemon daemon([](peer& client) { client.welcome(); });
  auto connected = daemon.connect();
  EXPECT_FAILS(connected.admin().status(), errc::gone, "gone");
  EXPECT_FAILS(connected.reconnect(), errc::unsupported, "the path of the daemon's socket");
}
