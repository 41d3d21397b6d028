// Start, restart, reload and end of the daemon, and its messages about its configuration.
#include "tests/support/child_process.hpp"
#include "workload.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

namespace terrace::e2e {
namespace {

using test::child_process;
using test::child_voice;

bool exists(const std::string& path) { return std::filesystem::exists(path); }

ended_program terraced(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program("TERRACED"));
  return run(arguments);
}

/// A loopback port that somebody else listens on.
struct taken_port {
  unique_fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string address;

  taken_port() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(socket.get(), 1), 0);
    EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &length), 0);
    address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
};

TEST(Lifecycle, EndsInOrderUnderLoadAndStartsAgainOnTheSameState) {
  daemon_options options{.disk_bytes = 64 * mebibyte};
  daemon_under_test daemon(options);
  ASSERT_TRUE(daemon.await_log("joined"));
  child_process load([&](const child_voice& voice) {
    tester client(daemon.socket(), "load");
    std::vector<std::vector<digest>> chains;
    for (uint64_t i = 0; i < 32; ++i)
      chains.push_back(chain_of(i, 2));
    std::vector<client::ticket<client::store_result>> stores;
    for (size_t next = 0;; ++next) {
      auto ticket = client->async().store(client.store_of(chains[next % 32]), patiently());
      if (ticket)
        stores.push_back(std::move(*ticket));
      if (next == 64)
        voice.say('w');
      if (stores.size() < 16 && ticket)
        continue;
      if (stores.empty())
        return ticket.error().code == errc::gone ? 0 : 3;
      auto stored = stores.front().wait(patiently());
      stores.erase(stores.begin());
      if (stored)
        continue;
      errc code = stored.error().code;
      if (code != errc::gone && code != errc::busy && code != errc::cancelled)
        return 4;
      if (stored.error().text.empty())
        return 5;
      if (!client->alive())
        return 0;
    }
  });
  ASSERT_EQ(load.await_word(), 'w');
  EXPECT_EQ(daemon.terminate(), 0);
  EXPECT_EQ(load.wait(), 0);
  EXPECT_FALSE(exists(daemon.socket()));
  EXPECT_NE(daemon.log().find("stopped"), std::string::npos);

  daemon.start();
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto chain = chain_of(500, 4);
  EXPECT_EQ(client.store(chain), 4U);
  EXPECT_EQ(client.load_and_check(chain), 4U);
  EXPECT_EQ(client.tier("disk").state, "ready");
}

TEST(Lifecycle, ClientThatLostTheDaemonFindsTheNextOne) {
  daemon_under_test daemon;
  tester client(daemon.socket());
  auto chain = chain_of(1, 2);
  client.store(chain);
  EXPECT_EQ(daemon.kill(), 128 + SIGKILL);
  EXPECT_TRUE(exists(daemon.socket())) << "the next daemon replaces it";
  auto lost = client->lookup(client.lookup_of(chain), patiently());
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, errc::gone);
  daemon.start();
  auto same = client->reconnect(patiently());
  ASSERT_TRUE(same) << same.error().text;
  EXPECT_FALSE(*same); // another run of the daemon
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  EXPECT_EQ(client.store(chain), 2U);
}

TEST(Lifecycle, SecondDaemonOnTheSameSocketIsRefusedInOneLine) {
  daemon_under_test daemon({.log_level = "error"});
  auto second = terraced({"--config", daemon.configuration_path()});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.err.find("another process listens on " + daemon.socket()), std::string::npos)
      << second.err;
  EXPECT_EQ(std::count(second.err.begin(), second.err.end(), '\n'), 1) << second.err;
  tester client(daemon.socket());
  EXPECT_EQ(client.store(chain_of(1, 1)), 1U);
}

TEST(Lifecycle, SecondDaemonHearsOfTheFirstAndNotOfItsPort) {
  taken_port port;
  daemon_under_test daemon({.log_level = "error"});
  auto second = terraced({"--config", daemon.configuration_path(), "--metrics", port.address});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.err.find("another process listens on " + daemon.socket()), std::string::npos)
      << second.err;
}

TEST(Lifecycle, ServesWithoutMetricsWhenTheirPortIsTakenAndNamesWhoHasIt) {
  taken_port port;
  daemon_under_test daemon({.metrics = port.address});
  ASSERT_TRUE(daemon.await_log("metrics cannot be served at " + port.address));
  ASSERT_TRUE(daemon.await_log("process " + std::to_string(::getpid()) + " ("));
  ASSERT_TRUE(daemon.await_log("without metrics"));
  tester client(daemon.socket());
  EXPECT_EQ(client.store(chain_of(1, 1)), 1U);
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST(Lifecycle, UnknownArgumentIsNamedInOneLine) {
  auto refused = terraced({"--sokcet", "x"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err.find("terraced: "), 0U) << refused.err;
  EXPECT_NE(refused.err.find("--sokcet"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("terraced --help"), std::string::npos) << refused.err;
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  EXPECT_EQ(terraced({"--config", "/nonexistent/terraced.toml"}).exit_code, 2);
}

TEST(Lifecycle, HangUpChangesTheLogLevelOfTheRunningDaemon) {
  daemon_under_test daemon;
  daemon.configure({.host_bytes = 64 * mebibyte, .log_level = "error"});
  daemon.signal(SIGHUP);
  EXPECT_TRUE(daemon.await_log("daemon.log_level: \"info\" -> \"error\", in force now"));
  EXPECT_TRUE(daemon.await_log("host.bytes"));
  tester client(daemon.socket());
  EXPECT_TRUE(eventually([&] { return client.tier("host").capacity_bytes == 64 * mebibyte; }))
      << "memory is added in the background";
  EXPECT_EQ(daemon.terminate(), 0);
  EXPECT_EQ(daemon.log().find("draining"), std::string::npos); // an info line is no longer logged
}

TEST(Configuration, CheckSaysThatAValidOneIsValidAndStartsNothing) {
  daemon_under_test daemon;
  ASSERT_EQ(daemon.terminate(), 0);
  auto checked = terraced({"--check", "--config", daemon.configuration_path()});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_NE(checked.out.find("is valid"), std::string::npos);
  EXPECT_FALSE(exists(daemon.socket()));
}

TEST(Configuration, AllMistakesAreToldAtOnceWithTheirLines) {
  temporary_folder folder;
  std::string path = folder / "wrong.toml";
  write_file(path,
             "[daemon]\nlog_level = \"loud\"\n[host]\nbytes = \"many\"\ncolour = 1\n[disk]\ndepth = -1\n");
  for (bool check : {true, false}) {
    auto words = std::vector<std::string>{"--config", path};
    if (check)
      words.push_back("--check");
    auto ended = terraced(words);
    EXPECT_EQ(ended.exit_code, 2);
    for (const char* mistake : {"log_level", "bytes", "colour", "depth", "wrong.toml:2", "wrong.toml:4",
                                "wrong.toml:5", "wrong.toml:7"})
      EXPECT_NE(ended.err.find(mistake), std::string::npos) << mistake << " is missing in\n" << ended.err;
  }
}

} // namespace
} // namespace terrace::e2e
