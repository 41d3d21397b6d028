// A daemon and clients that poll give the usual answers.
#include "workload.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>

#include <thread>

namespace terrace::e2e {
namespace {

client::connection polling_client(const std::string& socket, std::chrono::microseconds busy_poll) {
  return client::connection::connect({.path = socket, .name = "polling", .busy_poll = busy_poll}, patiently())
      .value();
}

daemon_options polling(uint32_t workers, const std::string& more = "") {
  return {.workers = workers, .daemon = "busy_poll = 1000\n", .more = more};
}

TEST(BusyPoll, LookupsStoresAndLoadsAreAnsweredAsEver) {
  for (uint32_t workers : {1U, 2U}) {
    daemon_under_test daemon(polling(workers));
    tester plain(daemon.socket());
    auto chain = chain_of(1, 8);
    EXPECT_EQ(plain.store(chain), 8U);
    auto client = polling_client(daemon.socket(), std::chrono::microseconds(200));
    auto space = client.open_space(test_space()).value();
    client::lookup_request request{.in = space, .what = client::prefix::of_digests(chain)};
    for (int i = 0; i < 300; ++i) {
      auto found = client.lookup(request, i % 2 == 0 ? client::deadline() : patiently());
      ASSERT_TRUE(found) << found.error().text;
      EXPECT_EQ(found->found_chunks, 8U);
    }
    EXPECT_EQ(plain.load_and_check(chain), 8U);
    EXPECT_EQ(daemon.terminate(), 0);
  }
}

TEST(BusyPoll, MoreClientsThanProcessors) {
  daemon_under_test daemon(polling(2));
  auto chain = chain_of(1, 4);
  {
    tester first(daemon.socket());
    first.store(chain);
  }
  std::vector<std::thread> clients;
  std::atomic<int> found{0};
  for (int i = 0; i < 8; ++i)
    clients.emplace_back([&] {
      auto client = polling_client(daemon.socket(), std::chrono::milliseconds(1));
      auto space = client.open_space(test_space()).value();
      for (int round = 0; round < 100; ++round) {
        auto answer = client.lookup({.in = space, .what = client::prefix::of_digests(chain)}, patiently());
        found += answer && answer->found_chunks == 4 ? 1 : 0;
      }
    });
  for (std::thread& each : clients)
    each.join();
  EXPECT_EQ(found, 800);
}

TEST(BusyPoll, AClientThatPollsLearnsThatItsDaemonIsGone) {
  daemon_under_test daemon(polling(1));
  auto client = polling_client(daemon.socket(), std::chrono::milliseconds(1));
  auto space = client.open_space(test_space()).value();
  daemon.kill();
  auto chain = chain_of(1, 4);
  auto found = client.lookup({.in = space, .what = client::prefix::of_digests(chain)}, patiently());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, errc::gone);
}

} // namespace
} // namespace terrace::e2e
