// Chains near the size of host memory and beyond, looked up under a lease, loaded and stored, as engines with
// long contexts do.
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <algorithm>

namespace terrace::e2e {
namespace {

constexpr uint64_t chain_object_bytes = 32 << 10; // 512 tokens of 64 bytes
constexpr uint64_t host_bytes = 32 * mebibyte;

/// Every third request is the same long chain with an end of its own; the others are short and new.
std::string trace_of(size_t requests, size_t long_blocks) {
  std::string lines;
  uint64_t next = 1'000'000;
  for (size_t i = 0; i < requests; ++i) {
    bool is_long = i % 3 == 0;
    size_t blocks = is_long ? long_blocks : 40 + i;
    std::string ids;
    for (size_t block = 0; block < blocks; ++block)
      ids += (ids.empty() ? "" : ",") + std::to_string(is_long && block + 1 != blocks ? block : next++);
    lines += "{\"timestamp\": " + std::to_string(1000 * i) +
             ", \"input_length\": " + std::to_string(blocks * 512) +
             ", \"output_length\": 1, \"hash_ids\": [" + ids + "]}\n";
  }
  return lines;
}

/// Returns the largest number with this name in the command's JSON; for `hit_tokens` it is that of all tiers.
uint64_t number_behind(const std::string& text, const std::string& name) {
  uint64_t largest = 0;
  std::string quoted = "\"" + name + "\":";
  for (auto at = text.find(quoted); at != std::string::npos; at = text.find(quoted, at + 1))
    largest = std::max<uint64_t>(largest, std::stoull(text.substr(at + quoted.size())));
  return largest;
}

/// Waits until the disk has this many objects.
bool written(tester& by, uint64_t objects) {
  return eventually([&] { return by.tier("disk").objects >= objects; });
}

/// Returns the requests of the verb that were answered without an error.
uint64_t answered(const std::string& metrics, const std::string& verb) {
  auto line = "terrace_requests_total{group=\"default\",verb=\"" + verb + "\",code=\"ok\"} ";
  auto at = metrics.find(line);
  return at == std::string::npos ? 0 : std::stoull(metrics.substr(at + line.size()));
}

struct replay_case {
  const char* mode;
  const char* clients;
  double times_host;
};

class LongChains : public ::testing::TestWithParam<replay_case> {};

TEST_P(LongChains, AreReplayedWithoutAnError) {
  uint16_t port = test::free_port();
  daemon_under_test daemon({.host_bytes = host_bytes,
                            .disk_bytes = 256 * mebibyte,
                            .lease = {},
                            .metrics = "127.0.0.1:" + std::to_string(port)});
  ASSERT_TRUE(daemon.await_log("joined"));
  auto blocks = static_cast<size_t>(GetParam().times_host * static_cast<double>(host_bytes) /
                                    static_cast<double>(chain_object_bytes + 4096));
  std::string trace = daemon.folder() / "trace.jsonl";
  write_file(trace, trace_of(9, blocks));
  auto replayed = run({program("TERRACE"), "replay", trace, "--speed", "0", "--clients", GetParam().clients,
                       "--mode", GetParam().mode, "--json", "--socket", daemon.socket()});
  EXPECT_EQ(replayed.exit_code, 0) << replayed.err << replayed.out;
  EXPECT_EQ(number_behind(replayed.out, "wrong_bytes"), 0U) << replayed.out;
  EXPECT_EQ(number_behind(replayed.out, "undelivered_chunks"), 0U) << replayed.out;
  bool alone = std::string(GetParam().clients) == "1", mapped = std::string(GetParam().mode) == "mapped";
  if (alone) { // the chain comes three times
    EXPECT_GE(number_behind(replayed.out, "hit_tokens"), (blocks - 1) * 512) << replayed.out;
  }
  auto metrics = test::scrape(port);
  uint64_t reads = answered(metrics, "read_lease"), loads = answered(metrics, "load");
  if (!mapped) {
    EXPECT_EQ(reads, 0U);
  } else if (alone) { // several clients may find nothing in time, or no room beside each other's leases
    EXPECT_NE(reads, 0U);
    EXPECT_EQ(loads, 0U) << "a replay that may map memory reads from it";
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, LongChains,
                         ::testing::Values(replay_case{"mapped", "1", 1.03}, replay_case{"daemon", "4", 1.03},
                                           replay_case{"daemon", "1", 4}, replay_case{"mapped", "4", 4}),
                         [](const auto& one) {
                           return std::string(one.param.mode) + one.param.clients + "Clients" +
                                  (one.param.times_host > 2 ? "FourTimesHost" : "NearHost");
                         });

TEST(LongChains, ALeasedChainBeyondHostMemoryIsReadPieceByPiece) {
  daemon_under_test daemon({.host_bytes = host_bytes, .disk_bytes = 256 * mebibyte, .lease = {}});
  ASSERT_TRUE(daemon.await_log("joined"));
  constexpr size_t count = 80;
  tester client(daemon.socket(), "long", count * object_bytes);
  auto chain = chain_of(1, count);
  EXPECT_EQ(client.store(chain), count);
  EXPECT_TRUE(written(client, count));
  auto found = client.lookup(chain, true);
  auto first = client->read_lease(found.held.id(), {0, count}, patiently());
  ASSERT_TRUE(first) << first.error().text;
  EXPECT_GT(first->objects.size(), 0U);
  EXPECT_LT(first->objects.size(), count);
  EXPECT_TRUE(has_content(chain[0], first->objects[0]));

  std::vector<std::span<uint8_t>> into;
  for (size_t i = 0; i < count; ++i)
    into.push_back(client.piece(i));
  auto bytes = client->load_under_lease(found.held, {0, count}, into, patiently());
  ASSERT_TRUE(bytes) << bytes.error().text;
  EXPECT_EQ(*bytes, count * object_bytes);
  for (size_t i = 0; i < count; ++i)
    EXPECT_TRUE(has_content(chain[i], client.piece(i))) << i;
}

} // namespace
} // namespace terrace::e2e
