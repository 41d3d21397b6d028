// The terrace command and Prometheus, against the real daemon.
#include "command_line.hpp"
#include "tests/support/scrape.hpp"
#include "workload.hpp"

namespace terrace::e2e {
namespace {

TEST(Command, ReplayOfAGeneratedTraceFindsNoWrongByte) {
  daemon_under_test daemon({.disk_bytes = 256 * mebibyte});
  ASSERT_TRUE(daemon.await_log("joined"));
  std::string trace = daemon.folder() / "trace.jsonl";
  auto made = run({program("TERRACE"), "trace", "generate", "--requests", "60", "--seed", "7", "-o", trace});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  for (const char* mode : {"mapped", "daemon"}) {
    auto replayed = terrace(daemon, {"replay", trace, "--speed", "0", "--clients", "2", "--mode", mode,
                                     "--salt", mode, "--bytes-per-token", "1024", "--json"});
    EXPECT_EQ(replayed.exit_code, 0) << replayed.err << replayed.out;
    EXPECT_NE(replayed.out.find("\"wrong_bytes\":0,"), std::string::npos) << replayed.out;
    // The trace exceeds host memory, so some of it came back from disk.
    EXPECT_EQ(replayed.out.find("\"disk\":{\"hit_tokens\":0,"), std::string::npos) << replayed.out;
    EXPECT_NE(replayed.out.find("\"requests\":60,"), std::string::npos) << replayed.out;
  }
  // Replays it again and prefetches each request before it arrives.
  auto ahead = terrace(daemon, {"replay", trace, "--speed", "1000", "--prefetch", "20", "--salt", "daemon",
                                "--bytes-per-token", "1024", "--json"});
  EXPECT_EQ(ahead.exit_code, 0) << ahead.err << ahead.out;
  EXPECT_NE(ahead.out.find("\"wrong_bytes\":0,"), std::string::npos) << ahead.out;
  EXPECT_NE(ahead.out.find("\"prefetch\":{\"requests\":60,"), std::string::npos) << ahead.out;
  EXPECT_NE(ahead.out.find("\"failed\":0}"), std::string::npos) << ahead.out;
  EXPECT_EQ(ahead.out.find("\"delivered_chunks\":0,"), std::string::npos) << ahead.out;
  auto unpaced = terrace(daemon, {"replay", trace, "--prefetch", "20"});
  EXPECT_EQ(unpaced.exit_code, 2);
  EXPECT_NE(unpaced.err.find("expected a --speed above 0"), std::string::npos) << unpaced.err;
  auto readable = terrace(daemon, {"replay", trace, "--speed", "0"});
  EXPECT_EQ(readable.exit_code, 0) << readable.err;
  EXPECT_NE(readable.out.find("wrong bytes"), std::string::npos) << readable.out;
}

/// Puts a file of this size and returns its key.
std::string put_file(const daemon_under_test& daemon, const std::string& file, size_t bytes) {
  std::string content(bytes, '\0');
  fill_content(chain_of(1, 1)[0], {reinterpret_cast<uint8_t*>(content.data()), content.size()});
  write_file(file, content);
  auto put = terrace(daemon, {"put", file});
  EXPECT_EQ(put.exit_code, 0) << put.err;
  return put.out.substr(0, 64);
}

TEST(Command, FileThatWasPutIsGotBackEqual) {
  daemon_under_test daemon;
  std::string file = daemon.folder() / "file", copy = daemon.folder() / "copy";
  std::string key = put_file(daemon, file, 5 * mebibyte + 123);
  EXPECT_EQ(run({"sha256sum", file}).out.substr(0, 64), key);
  auto got = terrace(daemon, {"get", key, "-o", copy});
  ASSERT_EQ(got.exit_code, 0) << got.err;
  EXPECT_TRUE(read_file(copy) == read_file(file));
  std::string unknown(64, '0');
  EXPECT_EQ(terrace(daemon, {"get", unknown, "-o", daemon.folder() / "none"}).exit_code, 1);
}

TEST(Command, FileLargerThanHostMemoryIsGotBackEqual) {
  daemon_under_test daemon({.host_bytes = 16 * mebibyte, .disk_bytes = 64 * mebibyte});
  ASSERT_TRUE(daemon.await_log("joined"));
  std::string file = daemon.folder() / "file", copy = daemon.folder() / "copy";
  std::string key = put_file(daemon, file, 37 * mebibyte + 123);
  auto got = terrace(daemon, {"get", key, "-o", copy});
  ASSERT_EQ(got.exit_code, 0) << got.err;
  EXPECT_TRUE(read_file(copy) == read_file(file));
}

TEST(Command, ClearForgetsEverythingOrOneSpace) {
  daemon_under_test daemon;
  tester client(daemon.socket());
  auto chain = chain_of(1, 3);
  client.store(chain);
  std::vector<std::string> space{"--model", "test",    "--dtype",        "u8", "--layout", "opaque",
                                 "--pool",  "kv:1MiB", "--chunk-tokens", "16"};
  auto clear = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "clear");
    return terrace(daemon, words);
  };
  EXPECT_EQ(clear({}).exit_code, 2);
  auto both = space;
  both.emplace_back("--all");
  EXPECT_EQ(clear(both).exit_code, 2);
  auto other = space;
  other.insert(other.end(), {"--revision", "another"});
  auto nothing = clear(other);
  EXPECT_EQ(nothing.exit_code, 1) << nothing.out;
  EXPECT_NE(nothing.err.find("no space has these fields; there are: "), std::string::npos) << nothing.err;
  EXPECT_EQ(client.lookup(chain).found_chunks, 3U);
  space.emplace_back("--json");
  auto cleared = clear(space);
  EXPECT_EQ(cleared.exit_code, 0) << cleared.err;
  EXPECT_NE(cleared.out.find("\"objects\":3"), std::string::npos) << cleared.out;
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
  client.store(chain);
  auto all = clear({"--all"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_NE(all.out.find("3 objects"), std::string::npos) << all.out;
  EXPECT_EQ(client.lookup(chain).found_chunks, 0U);
}

TEST(Command, StatusShowsTiersAndClients) {
  daemon_under_test daemon;
  tester client(daemon.socket(), "an-engine");
  auto status = terrace(daemon, {"status"});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_NE(status.out.find("an-engine"), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("host"), std::string::npos) << status.out;
}

TEST(Command, WrongInputAndAMissingDaemonHaveExitCodesOfTheirOwn) {
  daemon_under_test daemon;
  EXPECT_EQ(terrace(daemon, {"no-such-command"}).exit_code, 2);
  EXPECT_EQ(terrace(daemon, {"put", "/nonexistent/file"}).exit_code, 2);
  EXPECT_EQ(terrace(daemon, {"status"}).exit_code, 0);
  ASSERT_EQ(daemon.terminate(), 0);
  auto missing = terrace(daemon, {"status"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_NE(missing.err.find(daemon.socket()), std::string::npos) << missing.err;
}

TEST(Command, BenchTellsTheFirstStoreApartAndTheThreadsOfItsLimit) {
  daemon_under_test daemon({.host_bytes = 64 * mebibyte});
  std::vector<std::string> small{"bench", "--objects", "4", "--object-bytes", "1MiB", "--lookups",
                                 "10",    "--digests", "4", "--rounds"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), small.begin(), small.end());
    return more;
  };
  auto answer = answer_of(daemon, with({"3", "--copiers", "3"}));
  for (const char* rate :
       {"first_store_bytes_per_second", "store_bytes_per_second", "daemon_load_bytes_per_second",
        "mapped_load_bytes_per_second", "memcpy_bytes_per_second", "memcpy_one_thread_bytes_per_second"})
    EXPECT_GT(answer.at(rate).get<double>(), 0) << rate;
  EXPECT_EQ(answer.at("memcpy_threads"), 3);
  EXPECT_EQ(answer.at("rounds"), 3);
  EXPECT_EQ(answer.at("wrong_bytes"), 0);
  auto one = answer_of(daemon, with({"1"}));
  EXPECT_EQ(one.at("first_store_bytes_per_second"), one.at("store_bytes_per_second"));
  EXPECT_GE(one.at("memcpy_threads").get<int>(), 2); // the daemon's default
  auto shown = terrace(daemon, with({"2"}));
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  for (const char* row : {"first store, depth 4", "later stores, depth 4", "memcpy, one thread"})
    EXPECT_NE(shown.out.find(row), std::string::npos) << shown.out;
}

TEST(Command, BenchNeedsRoomForItsObjects) {
  daemon_under_test daemon({.host_bytes = 8 * mebibyte});
  auto refused = terrace(
      daemon, {"bench", "--objects", "16", "--object-bytes", "1MiB", "--lookups", "1", "--digests", "1"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("use fewer --objects"), std::string::npos) << refused.err;
}

TEST(Metrics, ARealPrometheusScrapesTheDaemonAndPromtoolFindsNoFault) {
  uint16_t port = test::free_port();
  std::string address = "127.0.0.1:" + std::to_string(port);
  temporary_folder first, second;
  daemon_under_test daemon(
      {.disk_bytes = 64 * mebibyte, .disk_paths = {first.path(), second.path()}, .metrics = address});
  ASSERT_TRUE(daemon.await_log("joined"));
  tester client(daemon.socket());
  auto chain = chain_of(1, 4);
  client.store(chain);
  client.load_and_check(chain);
  client.lookup(chain);
  std::string text = test::scrape(port);
  EXPECT_NE(text.find("# TYPE terrace_"), std::string::npos) << text;
  for (const temporary_folder* path : {&first, &second})
    EXPECT_NE(text.find("terrace_journal_records_total{group=\"default\",path=\"" + path->path() + "\"}"),
              std::string::npos)
        << text;
  auto checked = run({"promtool", "check", "metrics"}, text);
  if (checked.exit_code == 127)
    GTEST_SKIP() << "no promtool on this machine; install the package `prometheus`";
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  auto scraped =
      run({"python3", program("PROMETHEUS_SCRAPE"), address, "up == 1", "terrace_worker_jobs_total > 0",
           "terrace_turn_seconds_count{actor=\"connection\"} > 0"});
  EXPECT_EQ(scraped.exit_code, 0) << scraped.out << scraped.err;
}

} // namespace
} // namespace terrace::e2e
