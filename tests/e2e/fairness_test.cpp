// One client's requests do not hold up another.
#include "tests/support/raw_client.hpp"
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <unistd.h>

#include <atomic>
#include <memory>
#include <sstream>
#include <thread>

namespace terrace::e2e {
namespace {

uint32_t in_flight(tester& by, const std::string& name) {
  for (const auto& client : by.status().clients)
    if (client.name == name)
      return client.requests_in_flight;
  return 0;
}

/// Waits for the first of these loads of one chunk each, and ends the others.
void expect_delivered(std::vector<client::ticket<client::load_result>>& tickets) {
  auto loaded = tickets.front().wait(patiently());
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->delivered_chunks, 1U);
  for (size_t i = 1; i < tickets.size(); ++i)
    ASSERT_TRUE(tickets[i].cancel(patiently()));
}

/// Eight requests cause eight million system calls.
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
  expect_delivered(tickets);
}

/// Several connections of one group compete with a connection of another group.
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
    expect_delivered(tickets[i]);
}

/// Returns the operations that a group's disk started while the other group's was busy too, by direction.
double beside_others(uint16_t port, const std::string& group, const std::string& operation) {
  std::istringstream lines(test::scrape(port));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("terrace_disk_contended_operations_total{") &&
        line.find("group=\"" + group + "\"") != std::string::npos &&
        line.find("operation=\"" + operation + "\"") != std::string::npos)
      return std::stod(line.substr(line.rfind(' ')));
  return -1;
}

/// tests/transfer/device_share_test.cpp tests what each may have in flight then.
TEST(Fairness, TrustGroupsOnOneDeviceShareIt) {
  uint16_t port = test::free_port();
  daemon_under_test daemon;
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.configure({.host_bytes = 32 * mebibyte,
                    .disk_bytes = 256 * mebibyte,
                    .disk = "admission = \"always\"\n",
                    .listen = "[[listen]]\npath = \"" + daemon.socket() + "\"\n[[listen]]\npath = \"" +
                              daemon.second_socket() + "\"\ngroup = \"two\"\n",
                    .metrics = "127.0.0.1:" + std::to_string(port)});
  daemon.start();
  static constexpr size_t length = 24; // more than the host memory of a group
  auto store_and_load = [](tester& by, uint64_t seed) {
    auto chain = chain_of(seed, length);
    EXPECT_EQ(by.store(chain), length);
    EXPECT_EQ(by.load_and_check(chain), length);
  };
  tester first(daemon.socket(), "greedy", length * object_bytes);
  tester second(daemon.second_socket(), "other", length * object_bytes);
  for (tester* each : {&first, &second})
    ASSERT_TRUE(eventually([&] { return each->tier("disk").state == "ready"; }));
  store_and_load(first, 1);
  EXPECT_EQ(beside_others(port, "default", "read"), 0);
  store_and_load(second, 1);
  std::atomic<bool> enough = false;
  std::thread greedy([&] {
    auto chain = chain_of(1, length);
    while (!enough)
      EXPECT_EQ(first.load_and_check(chain), length);
  });
  auto chain = chain_of(1, length);
  bool shared = eventually([&] {
    EXPECT_EQ(second.load_and_check(chain), length);
    return beside_others(port, "default", "read") > 0 && beside_others(port, "two", "read") > 0;
  });
  enough = true;
  greedy.join();
  EXPECT_TRUE(shared) << "two groups never met on their device";
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
