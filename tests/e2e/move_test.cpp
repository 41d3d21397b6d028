// An operator moves a prompt to disk and back.
#include "workload.hpp"

#include <nlohmann/json.hpp>

namespace terrace::e2e {
namespace {

using json = nlohmann::json;

struct Move : ::testing::Test {
  daemon_under_test daemon{
      {.disk_bytes = 64 * mebibyte, .disk = "admission = \"always\"\ndemotion = \"off\"\n"}};

  void SetUp() override { ASSERT_TRUE(daemon.await_log("joined")); }

  static client::prompt_request prompt(tester& by, const std::vector<digest>& chain) {
    return {by.space(), client::prefix::of_digests(chain), 0, {}};
  }
  static client::move_result move(tester& by, const std::vector<digest>& chain, tier_kind to) {
    auto done = by->admin().move(prompt(by, chain), to, patiently());
    EXPECT_TRUE(done) << done.error().text;
    return done.value_or(client::move_result{});
  }
};

TEST_F(Move, ToDiskAndBack) {
  tester client(daemon.socket());
  auto chain = chain_of(1, 6);
  client.store(chain);
  EXPECT_EQ(client.lookup(chain, false, on_disk).found_chunks, 0U) << "nothing is written through";
  auto down = move(client, chain, tier_kind::disk);
  EXPECT_EQ(down.requested_chunks, 6U);
  EXPECT_EQ(down.moved.chunks, 6U);
  EXPECT_EQ(down.moved.bytes, 6 * object_bytes);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 0U);
  EXPECT_EQ(client.lookup(chain, false, on_disk).found_chunks, 6U);
  auto again = move(client, chain, tier_kind::disk);
  EXPECT_EQ(again.present.chunks, 6U);
  EXPECT_EQ(again.moved.chunks, 0U);

  auto up = move(client, chain, tier_kind::host);
  EXPECT_EQ(up.moved.chunks, 6U);
  EXPECT_EQ(up.moved.bytes, 6 * object_bytes);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 6U);
  EXPECT_EQ(move(client, chain, tier_kind::host).present.chunks, 6U);
  EXPECT_EQ(client.load_and_check(chain), 6U);
}

TEST_F(Move, AHeldPromptIsWrittenAndStaysInHostMemory) {
  tester client(daemon.socket());
  auto chain = chain_of(1, 4);
  client.store(chain);
  std::vector<digest> first(chain.begin(), chain.begin() + 2);
  auto held = client.lookup(first, true);
  ASSERT_EQ(held.found_chunks, 2U);
  auto done = move(client, chain, tier_kind::disk);
  EXPECT_EQ(done.held.chunks, 2U);
  EXPECT_EQ(done.moved.chunks, 2U);
  EXPECT_EQ(client.lookup(chain, false, on_host).found_chunks, 2U);
  EXPECT_EQ(client.lookup(chain, false, on_disk).found_chunks, 4U);
  EXPECT_TRUE(client->read_lease(held.held.id(), {}, patiently()));
}

TEST_F(Move, AnUnknownPromptIsNotFound) {
  tester client(daemon.socket());
  auto chain = chain_of(1, 3);
  EXPECT_EQ(move(client, chain, tier_kind::disk).missing.chunks, 3U);
  EXPECT_EQ(move(client, chain, tier_kind::host).missing.chunks, 3U);
  client.store({chain[0]});
  auto part = move(client, chain, tier_kind::disk);
  EXPECT_EQ(part.moved.chunks, 1U);
  EXPECT_EQ(part.missing.chunks, 2U);
}

TEST_F(Move, TheCommandTellsChunksAndBytes) {
  tester client(daemon.socket());
  auto chain = chain_of(1, 2);
  client.store(chain);
  std::string digests;
  for (const digest& one : chain)
    digests += (digests.empty() ? "" : ",") + to_hex(one);
  std::vector<std::string> words = {
      program("TERRACE"), "move", "--to",      "disk",   "--model",  "test",
      "--dtype",          "u8",   "--layout",  "opaque", "--pool",   "kv:1MiB",
      "--chunk-tokens",   "16",   "--digests", digests,  "--socket", daemon.socket()};
  auto text = run(words);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("2 chunks, 2.00 MiB"), std::string::npos) << text.out;
  words[3] = "host";
  words.emplace_back("--json");
  auto done = run(words);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(json::parse(done.out)["moved"]["chunks"], 2);
  words[3] = "tape";
  EXPECT_EQ(run(words).exit_code, 2);
}

/// The move waits for objects that are being written to the disk.
TEST(MoveWrittenThrough, RightAfterTheStore) {
  daemon_under_test daemon({.disk_bytes = 64 * mebibyte, .disk = "admission = \"always\"\n"});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto chain = chain_of(seed, 4);
    client.store(chain);
    auto down = client->admin().move({client.space(), client::prefix::of_digests(chain), 0, {}},
                                     tier_kind::disk, patiently());
    ASSERT_TRUE(down) << down.error().text;
    ASSERT_EQ(down->moved.chunks, 4U) << down->held.chunks << " held, " << down->failed.chunks << " failed, "
                                      << down->present.chunks << " only on disk before";
    EXPECT_EQ(client.lookup(chain, false, on_disk).found_chunks, 4U);
  }
}

TEST(MoveWithoutDisk, HasNothingToMove) {
  daemon_under_test daemon;
  tester client(daemon.socket());
  auto chain = chain_of(1, 1);
  client.store(chain);
  auto refused = client->admin().move(Move::prompt(client, chain), tier_kind::disk, patiently());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unsupported);
  auto there = client->admin().move(Move::prompt(client, chain), tier_kind::host, patiently());
  ASSERT_TRUE(there) << there.error().text;
  EXPECT_EQ(there->present.chunks, 1U);
  EXPECT_EQ(there->moved.chunks, 0U);
  auto nowhere = client->admin().move(Move::prompt(client, chain), tier_kind::gpu, patiently());
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, errc::unsupported);
  auto remote = client->admin().move(Move::prompt(client, chain), tier_kind::remote, patiently());
  ASSERT_FALSE(remote);
  EXPECT_EQ(remote.error().code, errc::bad_request);
}

} // namespace
} // namespace terrace::e2e
