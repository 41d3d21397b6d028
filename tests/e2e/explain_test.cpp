// Why the chunks of a prompt are a miss.
#include "command_line.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/scrape.hpp"
#include "workload.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

namespace terrace::e2e {
namespace {

using json = nlohmann::json;

/// The answer for the prompt in the space with this number.
json explained(const daemon_under_test& daemon, const std::vector<digest>& chain, uint32_t space = 1) {
  std::string digests;
  for (const digest& chunk : chain)
    digests += (digests.empty() ? "" : ",") + to_hex(chunk);
  return answer_of(daemon, {"explain", "--space", std::to_string(space), "--digests", digests});
}

/// "state:chunks" of each run.
std::string states(const json& answer) {
  std::string text;
  for (const json& run : answer["chunks"])
    text += (text.empty() ? "" : " ") + run["state"].get<std::string>() + ":" +
            std::to_string(run["chunks"].get<int>());
  return text;
}

class Explain : public ::testing::Test {
 protected:
  daemon_under_test daemon_;
};

TEST_F(Explain, WhatIsThereAndWhatWasNeverStored) {
  tester client(daemon_.socket());
  auto chain = chain_of(1, 4);
  client.store({chain.begin(), chain.begin() + 3});
  auto answer = explained(daemon_, chain);
  EXPECT_EQ(states(answer), "present:3 not_stored:1");
  EXPECT_EQ(answer["found_chunks"], 3);
  EXPECT_EQ(answer["requested_chunks"], 4);
  EXPECT_EQ(answer["chunks"][0]["tier"], "host");
  EXPECT_EQ(answer["chunks"][1]["tier"], "");
  auto text = terrace(daemon_, {"explain", "--space", "1", "--digests", to_hex(chain[3])});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("0 of 1 chunk can"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("No engine has stored it"), std::string::npos) << text.out;
}

TEST_F(Explain, WhatWasEvictedToMakeRoom) {
  tester client(daemon_.socket());
  auto old = chain_of(1, 2);
  client.store(old);
  for (uint64_t seed = 2; seed < 12; ++seed)
    client.store(chain_of(seed, 8));
  auto answer = explained(daemon_, old);
  EXPECT_EQ(states(answer), "evicted:2") << answer;
  EXPECT_EQ(answer["chunks"][0]["tier"], "host");
  auto text = terrace(daemon_, {"explain", "--space", "1", "--digests", to_hex(old[0])});
  EXPECT_NE(text.out.find("terrace pin"), std::string::npos) << text.out;
}

TEST_F(Explain, ThePolicyThatEvicted) {
  tester client(daemon_.socket());
  auto old = chain_of(1, 2);
  client.store(old);
  answer_of(daemon_, {"policies", "set", "host", "fifo"});
  for (uint64_t seed = 2; seed < 12; ++seed)
    client.store(chain_of(seed, 8));
  auto answer = explained(daemon_, old);
  ASSERT_EQ(states(answer), "evicted:2") << answer;
  std::string detail;
  EXPECT_TRUE(eventually([&] { // the policy tells the age after the eviction
    detail = explained(daemon_, old)["chunks"][0]["detail"];
    return detail.starts_with("the policy fifo chose it; it was last used ");
  })) << detail;
}

TEST_F(Explain, ThePromptOfARecentLookup) {
  tester client(daemon_.socket(), "an-engine");
  auto chain = chain_of(1, 4);
  client.store({chain.begin(), chain.begin() + 3});
  client.lookup(chain, true);
  client.lookup(chain_of(2, 1), false);
  for (const char* name : {"last", "1"}) {
    auto answer = answer_of(daemon_, {"explain", "--lookup", name});
    EXPECT_EQ(states(answer), "present:3 not_stored:1") << name;
  }
  auto text = terrace(daemon_, {"explain", "--lookup", "1"});
  EXPECT_NE(text.out.find("lookup 1 of client an-engine, "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("found 3 of 4 chunks then"), std::string::npos) << text.out;
  auto unknown = terrace(daemon_, {"explain", "--lookup", "cmpl-77"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("\"cmpl-77\""), std::string::npos) << unknown.err;
  auto both = terrace(daemon_, {"explain", "--lookup", "1", "--space", "1"});
  EXPECT_EQ(both.exit_code, 2) << both.err;
}

TEST_F(Explain, ARecordedTraceIsSimulatedAndReplayed) {
  tester client(daemon_.socket());
  for (uint64_t seed : {1, 2, 1})
    client.lookup(chain_of(seed, 4), true);
  temporary_folder folder;
  std::string file = folder / "trace.jsonl";
  auto said = answer_of(daemon_, {"record", "--kept", "--no-wait", "-o", file});
  EXPECT_EQ(said["requests"], 3);
  std::string block = std::to_string(said["block_tokens"].get<int>());
  auto simulated = run({program("TERRACE"), "simulate", file, "--block-tokens", block, "--chunk-tokens",
                        block, "--capacity", "64MiB", "--policies", "lru", "--json"});
  EXPECT_EQ(simulated.exit_code, 0) << simulated.err;
  auto info = run({program("TERRACE"), "trace", "info", file, "--block-tokens", block, "--json"});
  EXPECT_EQ(json::parse(info.out)["distinct_blocks"], 8) << info.out << info.err;
  auto replayed = terrace(daemon_, {"replay", file, "--block-tokens", block, "--chunk-tokens", block,
                                    "--bytes-per-token", "64", "--json"});
  EXPECT_EQ(replayed.exit_code, 0) << replayed.err;
  auto read = read_file(file);
  EXPECT_EQ(read.find(to_hex(chain_of(1, 1)[0]).substr(0, 12)), std::string::npos) << "no digests";
}

TEST_F(Explain, WhatWasClearedOrRemoved) {
  tester client(daemon_.socket());
  auto cleared = chain_of(1, 2), removed = chain_of(2, 2);
  client.store(cleared);
  ASSERT_TRUE(client->admin().clear(&client.space(), patiently()));
  client.store(removed);
  ASSERT_TRUE(client->admin().evict({.in = client.space(), .what = client::prefix::of_digests(removed)},
                                    patiently()));
  EXPECT_EQ(states(explained(daemon_, cleared)), "cleared:2");
  EXPECT_EQ(states(explained(daemon_, removed)), "removed:2");
  client.store(removed);
  EXPECT_EQ(states(explained(daemon_, removed)), "present:2") << "it has come back";
}

TEST_F(Explain, WhichRankIsMissing) {
  auto spec = test_space();
  spec.world_size = 2;
  spec.rank = 0;
  tester first(daemon_.socket(), "rank 0", 8 * object_bytes, spec);
  auto chain = chain_of(1, 2);
  first.store(chain);
  auto answer = explained(daemon_, chain);
  EXPECT_EQ(states(answer), "incomplete:2");
  EXPECT_EQ(answer["chunks"][0]["detail"], "rank 1 of pool kv is missing");
}

TEST_F(Explain, WhichOtherSpaceHasIt) {
  auto other = test_space();
  other.dtype = "fp8";
  tester here(daemon_.socket(), "here"), there(daemon_.socket(), "there", 8 * object_bytes, other);
  auto chain = chain_of(1, 2);
  there.store(chain);
  auto answer = explained(daemon_, chain);
  EXPECT_EQ(states(answer), "not_stored:2");
  EXPECT_EQ(answer["chunks"][0]["detail"], "space 2 has it: dtype is fp8 there and u8 here");
}

TEST(ExplainMetrics, CountMissedTokensByClient) {
  uint16_t port = test::free_port();
  daemon_under_test daemon({.metrics = "127.0.0.1:" + std::to_string(port)});
  tester one(daemon.socket(), "one"), two(daemon.socket(), "two");
  one.lookup(chain_of(1, 4), true);
  two.lookup(chain_of(2, 3), true);
  two.lookup(chain_of(2, 3), true);
  auto missed = [text = test::scrape(port)](const std::string& client) {
    return test::number_behind(text, "terrace_client_miss_tokens_total{group=\"default\",client=\"" + client +
                                         "\",reason=\"not_stored\"}");
  };
  EXPECT_EQ(missed("one"), 4 * space_chunk_tokens);
  EXPECT_EQ(missed("two"), 6 * space_chunk_tokens);
}

TEST(ExplainMetrics, CountTheTokensThatLookupsUnderALeaseMissByReason) {
  uint16_t port = test::free_port();
  daemon_under_test daemon({.metrics = "127.0.0.1:" + std::to_string(port)});
  auto missed = [port](const std::string& reason) {
    return test::number_behind(test::scrape(port),
                               "terrace_miss_tokens_total{group=\"default\",reason=\"" + reason + "\"}");
  };
  tester client(daemon.socket());
  auto chain = chain_of(1, 3);
  client.store({chain.begin(), chain.begin() + 1});
  client.lookup(chain, true);
  EXPECT_EQ(missed("not_stored"), 2 * space_chunk_tokens);
  ASSERT_TRUE(client->admin().clear(&client.space(), patiently()));
  client.lookup({chain.begin(), chain.begin() + 1}, true);
  EXPECT_EQ(missed("cleared"), space_chunk_tokens);
  client.lookup(chain, false);
  explained(daemon, chain);
  EXPECT_EQ(missed("not_stored"), 2 * space_chunk_tokens) << "others do not count";
  EXPECT_EQ(missed("cleared"), space_chunk_tokens);
}

TEST_F(Explain, WhatHostMemoryHadNoRoomFor) {
  tester client(daemon_.socket());
  auto held = chain_of(1, objects_in(32 * mebibyte)), refused = chain_of(2, 3);
  client.store(held);
  auto lease = client.lookup(held, true);
  ASSERT_EQ(lease.found_chunks, held.size());
  auto stored = client->store(client.store_of(refused), patiently());
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, errc::no_space);
  auto answer = explained(daemon_, refused);
  EXPECT_EQ(states(answer), "not_admitted:3");
  EXPECT_EQ(answer["chunks"][0]["tier"], "host");
  EXPECT_EQ(answer["chunks"][0]["detail"], "there was no room, and nothing could be evicted for it");
}

TEST_F(Explain, AManyTimesCutPromptIsCutAtTheBound) {
  tester client(daemon_.socket(), "tester", 31 * object_bytes);
  auto stored = chain_of(1, 20);
  client.store(stored);
  std::vector<digest> mixed; // every second chunk is there
  auto absent = chain_of(2, 2'000);
  for (size_t i = 0; i < 2'000; ++i) {
    mixed.push_back(absent[i]);
    mixed.push_back(stored[i % stored.size()]);
  }
  auto found =
      client->admin().explain({.in = client.space(), .what = client::prefix::of_digests(mixed)}, patiently());
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->requested_chunks, 4'000U);
  EXPECT_EQ(found->found_chunks, 0U);
  EXPECT_EQ(found->runs.size(), 1'024U);
}

TEST_F(Explain, TheLongestPromptIsExaminedInManyTurns) {
  tester client(daemon_.socket());
  auto chain = chain_of(1, 60'000);
  client.store({chain.begin(), chain.begin() + 2});
  auto found =
      client->admin().explain({.in = client.space(), .what = client::prefix::of_digests(chain)}, patiently());
  ASSERT_TRUE(found) << found.error().text;
  ASSERT_EQ(found->runs.size(), 2U);
  EXPECT_EQ(found->runs[0].state, "present");
  EXPECT_EQ(found->runs[1].state, "not_stored");
  EXPECT_EQ(found->runs[0].count + found->runs[1].count, 60'000U);
}

// What another tenant has stored is nobody's business but an operator's.
TEST(ExplainOtherTenants, OnlyOperatorsAreToldWhatTheyHave) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can become another user";
  constexpr uid_t user = 65534;
  daemon_under_test daemon;
  ASSERT_EQ(daemon.terminate(), 0);
  daemon.configure(
      {.listen = "[[listen]]\npath = \"" + daemon.socket() + "\"\nuids = [0, 65534]\nmode = \"0666\"\n"});
  daemon.start();
  auto salted = test_space();
  salted.salt = "tenant";
  tester other(daemon.socket(), "other", 8 * object_bytes, salted);
  auto chain = chain_of(1, 2);
  other.store(chain);
  auto detail = [&] {
    tester asking(daemon.socket());
    auto found = asking->admin().explain({.in = asking.space(), .what = client::prefix::of_digests(chain)},
                                         patiently());
    return found && found->runs.size() == 1 ? found->runs[0].detail : "no answer";
  };
  EXPECT_EQ(detail(), "space 1 has it: the salt differs");
  test::child_process tenant([&](const test::child_voice&) {
    if (::setuid(user) != 0)
      return 2;
    return detail().empty() ? 0 : 1;
  });
  EXPECT_EQ(tenant.wait(), 0);
}

TEST(ExplainDisk, WhatIsOnDiskAndWhatCouldNotBeReadThere) {
  temporary_folder state;
  daemon_under_test daemon({.disk_bytes = 64 * mebibyte, .state_dir = state.path()});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto read = chain_of(1, 2), other = chain_of(2, 2);
  for (const auto& chain : {read, other}) {
    client.store(chain);
    ASSERT_TRUE(eventually([&] { return client.lookup(chain, false, on_disk).found_chunks == 2; }));
    client::prompt_request from_host{.in = client.space(), .what = client::prefix::of_digests(chain)};
    from_host.tiers = on_host;
    ASSERT_TRUE(client->admin().evict(from_host, patiently()));
  }
  auto answer = explained(daemon, other);
  EXPECT_EQ(states(answer), "present:2");
  EXPECT_EQ(answer["chunks"][0]["tier"], "disk");

  unique_fd file(::open((state.path() + "/terrace.extents").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 0), 0);
  client.load_and_check(read);
  ASSERT_TRUE(daemon.await_log("the disk tier is degraded"));
  EXPECT_EQ(states(explained(daemon, read)), "damaged:2") << "its bytes could not be read";
}

TEST(ExplainDisk, WhatLeftHostMemoryBeforeItsSecondUse) {
  uint16_t port = test::free_port();
  daemon_under_test daemon({.disk_bytes = 64 * mebibyte,
                            .disk = "demotion = \"selective\"\n",
                            .metrics = "127.0.0.1:" + std::to_string(port)});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto once = chain_of(1, 2);
  client.store(once);
  for (uint64_t seed = 2; seed < 12; ++seed)
    client.store(chain_of(seed, 8));
  auto answer = explained(daemon, once);
  EXPECT_EQ(states(answer), "not_admitted:2") << answer;
  EXPECT_EQ(answer["chunks"][0]["tier"], "disk");
  EXPECT_EQ(answer["chunks"][0]["detail"], "it was not used a second time");
  auto text = terrace(daemon, {"explain", "--space", "1", "--digests", to_hex(once[0])});
  EXPECT_NE(text.out.find("did not take it"), std::string::npos) << text.out;
  client.lookup(once, true);
  EXPECT_EQ(test::number_behind(test::scrape(port),
                                "terrace_miss_tokens_total{group=\"default\",reason=\"not_admitted\"}"),
            2 * space_chunk_tokens);
}

// A trial of a disk reads 16 MiB at most: of a longer prompt, an engine of this speed is always left some.
TEST(ExplainDisk, WhatIsLeftToAnEngineThatComputesItSooner) {
  uint16_t port = test::free_port();
  daemon_under_test daemon({.disk_bytes = 64 * mebibyte, .metrics = "127.0.0.1:" + std::to_string(port)});
  ASSERT_TRUE(daemon.await_log("joined"));
  auto spec = test_space();
  spec.prefill_tokens_per_s = 4'000'000'000;
  tester engine(daemon.socket(), "engine", 8 * object_bytes, spec);
  constexpr uint32_t chunks = 24;
  auto chain = chain_of(1, chunks + 1);
  const std::vector<digest> stored(chain.begin(), chain.end() - 1);
  engine.store(stored);
  ASSERT_TRUE(eventually([&] { return engine.tier("disk").objects == chunks; }));
  EXPECT_EQ(states(explained(daemon, stored)), "present:24") << "host memory is read at once";
  client::prompt_request from_host{.in = engine.space(), .what = client::prefix::of_digests(stored)};
  from_host.tiers = on_host;
  ASSERT_TRUE(engine->admin().evict(from_host, patiently()));
  EXPECT_EQ(states(explained(daemon, stored)), "present:24") << "no engine has declared its speed yet";
  auto found = engine.lookup(chain, true);
  ASSERT_LE(found.found_chunks, 16U);
  ASSERT_EQ(found.found_chunks + found.recompute_chunks, chunks);
  auto missed = [text = test::scrape(port)](const std::string& reason) {
    return test::number_behind(text,
                               "terrace_miss_tokens_total{group=\"default\",reason=\"" + reason + "\"}");
  };
  EXPECT_EQ(missed("left_to_recompute"), found.recompute_chunks * space_chunk_tokens);
  EXPECT_EQ(missed("not_stored"), space_chunk_tokens) << "the last chunk";

  for (const json& answer : {explained(daemon, chain), answer_of(daemon, {"explain", "--lookup", "last"})}) {
    ASSERT_GE(answer["chunks"].size(), 2U) << answer;
    const json& left = answer["chunks"][answer["chunks"].size() - 2];
    EXPECT_EQ(left["state"], "left_to_recompute") << answer;
    EXPECT_EQ(left["tier"], "disk");
    EXPECT_EQ(left["detail"], "reading takes longer than computing at 4000000000 tokens/s");
    EXPECT_LE(answer["found_chunks"], 16);
    EXPECT_EQ(answer["chunks"].back()["state"], "not_stored");
  }
  auto text = terrace(daemon, {"explain", "--lookup", "last"});
  EXPECT_NE(text.out.find("and left " + std::to_string(found.recompute_chunks) + " more to its engine"),
            std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("computes it sooner"), std::string::npos) << text.out;
  auto everything = engine->admin().explain({.in = engine.space(),
                                             .what = client::prefix::of_digests(stored),
                                             .options = {.prefill_tokens_per_s = 0}},
                                            patiently());
  ASSERT_TRUE(everything) << everything.error().text;
  EXPECT_EQ(everything->found_chunks, chunks) << "without a speed nothing is left";
}

TEST_F(Explain, WrongArgumentsSayWhatWasExpected) {
  tester client(daemon_.socket());
  auto no_space = terrace(daemon_, {"explain", "--space", "9", "--digests", to_hex(chain_of(1, 1)[0])});
  EXPECT_EQ(no_space.exit_code, 1);
  EXPECT_NE(no_space.err.find("no space has the number 9"), std::string::npos) << no_space.err;
  auto nothing = terrace(daemon_, {"explain", "--space", "1"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_NE(nothing.err.find("--tokens, --digests, --text or --lookup"), std::string::npos) << nothing.err;
}

} // namespace
} // namespace terrace::e2e
