// What one client asks for does not hold up another.
#include "tests/support/raw_client.hpp"
#include "workload.hpp"

#include <unistd.h>

#include <memory>

namespace terrace::e2e {
namespace {

uint32_t in_flight(tester& by, const std::string& name) {
  for (const auto& client : by.status().clients)
    if (client.name == name)
      return client.requests_in_flight;
  return 0;
}

/// Waits for loads of one chunk each.
void expect_delivered(slow_client& by, std::vector<client::ticket<client::load_result>>& tickets) {
  for (auto& ticket : tickets) {
    auto loaded = by->wait(ticket, patiently());
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->delivered_chunks, 1U);
  }
}

/// Eight million system calls in eight requests.
TEST(Fairness, TinyPiecesOfOneClientDoNotHoldUpTheLoadsOfAnother) {
  daemon_under_test daemon;
  slow_client greedy(daemon.socket(), "greedy");
  tester other(daemon.socket(), "other");
  auto chain = chain_of(1, 4);
  EXPECT_EQ(other.store(chain), 4U);
  auto tickets = greedy.load(chain[0], 8);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(other.load_and_check(chain), 4U);
  EXPECT_GE(in_flight(other, "greedy"), 4U) << "ten loads of the other client took as long as most of these";
  expect_delivered(greedy, tickets);
}

/// The same, from several connections of a group, against one of another group.
TEST(Fairness, OneTrustGroupDoesNotHoldUpTheLoadsOfAnother) {
  daemon_under_test daemon;
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.configure({.listen = "[[listen]]\npath = \"" + daemon.socket() + "\"\n[[listen]]\npath = \"" +
                              daemon.second_socket() + "\"\ngroup = \"two\"\n"});
  daemon.start();
  tester filler(daemon.socket(), "filler");
  auto chain = chain_of(1, 4);
  EXPECT_EQ(filler.store(chain), 4U);
  std::vector<std::unique_ptr<slow_client>> greedy;
  std::vector<std::vector<client::ticket<client::load_result>>> tickets;
  for (int i = 0; i < 4; ++i) {
    greedy.push_back(std::make_unique<slow_client>(daemon.socket(), "greedy " + std::to_string(i)));
    tickets.push_back(greedy.back()->load(chain[0], 2));
  }
  tester other(daemon.second_socket(), "other");
  EXPECT_EQ(other.store(chain), 4U) << "of its own group";
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(other.load_and_check(chain), 4U);
  uint32_t left = 0;
  for (int i = 0; i < 4; ++i)
    left += in_flight(filler, "greedy " + std::to_string(i));
  EXPECT_GE(left, 4U) << "the other group's loads took as long as most of these";
  for (size_t i = 0; i < greedy.size(); ++i)
    expect_delivered(*greedy[i], tickets[i]);
}

TEST(Fairness, OneTrustGroupDoesNotTakeAllConnections) {
  daemon_under_test daemon;
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.configure({.listen = "[[listen]]\npath = \"" + daemon.socket() + "\"\n[[listen]]\npath = \"" +
                              daemon.second_socket() + "\"\ngroup = \"two\"\n",
                    .connection = "connections_max = 8\n"});
  daemon.start();
  std::vector<test::raw_client> clients;
  auto connected = [&](const std::string& socket) {
    clients.emplace_back(socket);
    return clients.back().greet();
  };
  for (int i = 0; i < 6; ++i)
    EXPECT_TRUE(connected(daemon.socket())) << i;
  test::raw_client seventh(daemon.socket());
  ASSERT_TRUE(seventh.send(test::hello_frame()));
  auto said = seventh.receive();
  ASSERT_TRUE(said && said->is_error());
  EXPECT_EQ(said->code(), errc::busy);
  EXPECT_NE(said->text().find("other trust groups"), std::string::npos) << said->text();
  EXPECT_TRUE(connected(daemon.second_socket()));
  EXPECT_TRUE(connected(daemon.second_socket()));
}

TEST(Fairness, AProcessLeavesConnectionsForOthers) {
  daemon_under_test daemon({.connection = "connections_max = 24\n"});
  std::vector<client::connection> opened;
  errc refused = errc::ok;
  std::string why;
  while (refused == errc::ok && opened.size() < 24) {
    auto one = client::connection::connect({.path = daemon.socket()}, patiently());
    if (one) {
      opened.push_back(std::move(*one));
    } else {
      refused = one.error().code;
      why = one.error().text;
    }
  }
  EXPECT_EQ(opened.size(), 18U) << "three quarters";
  EXPECT_EQ(refused, errc::busy);
  EXPECT_NE(why.find("process " + std::to_string(::getpid())), std::string::npos) << why;
  auto cleared = run({program("TERRACE"), "clear", "--all", "--socket", daemon.socket()});
  EXPECT_EQ(cleared.exit_code, 0) << cleared.err << ": another process finds a place";
}

} // namespace
} // namespace terrace::e2e
