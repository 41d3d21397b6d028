// `terrace replay` with prompts as tokens, and with a session for each conversation: equal hits, fewer tokens
// sent.
#include "workload.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace terrace::e2e {
namespace {

class ReplaySessions : public testing::Test {
 protected:
  ReplaySessions() {
    auto made = run({program("TERRACE"), "trace", "generate", "--requests", "40", "--turns", "8",
                     "--system-prompt-tokens", "1024", "-o", folder_ / "trace.jsonl"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }
  /// Returns its summary. Each replay has a space of its own.
  nlohmann::json replay(const std::string& salt, std::vector<std::string> with) {
    std::vector<std::string> words{
        program("TERRACE"), "replay", folder_ / "trace.jsonl", "--socket", daemon_.socket(), "--json",
        "--salt",           salt};
    words.insert(words.end(), with.begin(), with.end());
    auto done = run(words);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return nlohmann::json::parse(done.out);
  }

  temporary_folder folder_;
  daemon_under_test daemon_{{.host_bytes = 64 * mebibyte}};
};

TEST_F(ReplaySessions, TurnsOfASessionSendTheirNewTokens) {
  auto digests = replay("a", {}), tokens = replay("b", {"--tokens"}), sessions = replay("c", {"--sessions"});
  for (const auto* one : {&digests, &tokens, &sessions}) {
    EXPECT_EQ((*one)["wrong_bytes"], 0);
    EXPECT_EQ((*one)["hit_tokens"], digests["hit_tokens"]);
    EXPECT_TRUE((*one)["errors"].empty()) << (*one)["errors"];
  }
  EXPECT_GT(digests["hit_tokens"], 0);
  EXPECT_EQ(digests["sent_tokens"], 0);
  EXPECT_GT(tokens["sent_tokens"], tokens["chunk_tokens"]) << "for lookups, and for stores again";
  EXPECT_LT(sessions["sent_tokens"].get<double>(), 0.75 * tokens["sent_tokens"].get<double>())
      << "for lookups what is new, and for stores the tokens of their chunks";
}

TEST_F(ReplaySessions, APrefetchNamesDigests) {
  auto refused = run({program("TERRACE"), "replay", folder_ / "trace.jsonl", "--socket", daemon_.socket(),
                      "--sessions", "--speed", "1000", "--prefetch", "5"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("neither --tokens nor --sessions"), std::string::npos) << refused.err;
}

} // namespace
} // namespace terrace::e2e
