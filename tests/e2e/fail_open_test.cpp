// A daemon that is killed again and again during a replay with sessions: no call waits until its deadline, no
// byte is wrong, and stored chunks are found again.
#include "workload.hpp"

#include <nlohmann/json.hpp>

#include <future>

namespace terrace::e2e {
namespace {

TEST(FailOpen, ADaemonThatIsKilledUnderAReplayIsAMissUntilItIsBack) {
  temporary_folder folder;
  auto made = run({program("TERRACE"), "trace", "generate", "--requests", "60", "--turns", "6", "--rate", "2",
                   "-o", folder / "trace.jsonl"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  daemon_under_test daemon({.host_bytes = 64 * mebibyte, .disk_bytes = 64 * mebibyte});
  auto replay = [&](const std::string& speed) {
    return run({program("TERRACE"), "replay", folder / "trace.jsonl", "--socket", daemon.socket(), "--json",
                "--sessions", "--fail-open", "60000", "--speed", speed});
  };
  // A daemon under a sanitizer takes longer to come back, so the replay is longer.
  auto going = std::async(std::launch::async, replay, test::sanitized() ? "3" : "10");
  auto ended = [&] { return going.wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
  // Kills only after the replay has had a hit, which it has if it has had two answers since.
  auto has_hits = [&] {
    tester looks(daemon.socket());
    return looks.tier("host").hits > 0 || looks.tier("disk").hits > 0;
  };
  auto answers = [&]() -> uint64_t {
    tester looks(daemon.socket());
    auto status = looks->admin().status(patiently());
    uint64_t all = 0;
    for (const client::client_status& each : status ? status->clients : std::vector<client::client_status>())
      all += each.name == "tester" ? 0 : each.answered;
    return all;
  };
  int kills = 0;
  for (; kills < 4 && !ended(); ++kills) {
    EXPECT_TRUE(eventually([&] { return ended() || has_hits(); }));
    const uint64_t before = ended() ? 0 : answers();
    EXPECT_TRUE(eventually([&] { return ended() || answers() >= before + 2; }));
    daemon.kill();
    daemon.start();
  }
  EXPECT_GT(kills, 0);
  auto done = going.get();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  auto under_kills = nlohmann::json::parse(done.out);
  EXPECT_EQ(under_kills["requests"], 60);
  EXPECT_EQ(under_kills["wrong_bytes"], 0) << under_kills["first_wrong"];
  for (const auto& [code, counted] : under_kills["errors"].items()) // no call reached its deadline
    EXPECT_EQ(code, "gone") << counted;
  EXPECT_GT(under_kills["hit_tokens"], 0) << "between the kills";

  ASSERT_TRUE(daemon.await_log("joined"));
  auto after = nlohmann::json::parse(replay("0").out);
  EXPECT_EQ(after["wrong_bytes"], 0) << after["first_wrong"];
  EXPECT_GT(after["hit_tokens"], 0);
  EXPECT_TRUE(after["errors"].empty()) << after["errors"];
}

} // namespace
} // namespace terrace::e2e
