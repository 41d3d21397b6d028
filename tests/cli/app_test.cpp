#include "captured_console.hpp"
#include "cli/app.hpp"
#include "temporary_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace terrace::cli {
namespace {

using testing::HasSubstr;

struct ran {
  exit_code code;
  std::string out;
  std::string err;
};

ran run(const std::vector<std::string>& words) {
  captured_console to;
  exit_code code = run_app(words, to.get());
  return {code, to.out(), to.err()};
}

void expect_usage(const std::vector<std::string>& words, const std::string& text) {
  ran r = run(words);
  EXPECT_EQ(r.code, exit_code::usage);
  EXPECT_THAT(r.err, HasSubstr(text));
  EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  EXPECT_EQ(r.out, "");
}

TEST(App, TellsItsVersion) {
  ran r = run({"--version"});
  EXPECT_EQ(r.code, exit_code::ok);
  EXPECT_EQ(r.out, "terrace " TERRACE_VERSION "\n");
}

TEST(App, HelpHasExamples) {
  EXPECT_THAT(run({"--help"}).out, HasSubstr("terrace replay trace.jsonl"));
  EXPECT_THAT(run({"trace", "generate", "--help"}).out, HasSubstr("terrace trace generate -o trace.jsonl"));
}

TEST(App, SaysWhatWasExpectedInOneLine) {
  expect_usage({}, "expected a command (");
  expect_usage({"stats"}, "found \"stats\"");
  expect_usage({"trace"}, "terrace trace: expected a command (generate, info, convert)");
  expect_usage({"trace", "info"}, "TRACE is required");
  expect_usage({"trace", "info", "--limit", "many", "x"},
               "--limit: expected a whole number of at least 0, found \"many\"");
  expect_usage({"trace", "generate", "--arrivals", "sometimes"}, "{poisson,bursty}");
  expect_usage({"trace", "generate", "--branch", "2"}, "--branch: expected a chance from 0 to 1, found 2");
  expect_usage({"trace", "generate", "--colour"}, "--colour");
}

TEST(App, NamesTheFileThatCannotBeRead) {
  expect_usage({"trace", "info", "/does/not/exist"}, "/does/not/exist: expected a readable file");
  expect_usage({"trace", "info", "/tmp"}, "/tmp: expected a file, found a directory");
}

TEST(App, NamesTheLineThatIsWrong) {
  temporary_file file(R"({"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1]})"
                      "\n{\"timestamp\": 1}\n");
  expect_usage({"trace", "info", file.path()}, file.path() + ":2: expected the key \"input_length\"");
}

TEST(App, GeneratesATraceThatInfoReads) {
  temporary_file file;
  EXPECT_EQ(run({"trace", "generate", "-o", file.path(), "--requests", "50"}).code, exit_code::ok);
  ran info = run({"trace", "info", file.path(), "--json"});
  EXPECT_EQ(info.code, exit_code::ok);
  EXPECT_EQ(nlohmann::json::parse(info.out)["requests"], 50);
  EXPECT_THAT(run({"trace", "info", file.path()}).out, HasSubstr("infinite cache"));
}

TEST(App, SaysWhenTheOutputCannotBeWritten) {
  ran r = run({"trace", "generate", "-o", "/does/not/exist"});
  EXPECT_EQ(r.code, exit_code::failed);
  EXPECT_THAT(r.err, HasSubstr("/does/not/exist: cannot be written"));
}

TEST(App, WithoutADaemonSaysWhatToDo) {
  temporary_file trace(R"({"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1]})");
  std::string key(64, 'a');
  for (std::vector<std::string> words :
       {std::vector<std::string>{"status"},
        {"bench"},
        {"replay", trace.path()},
        {"put", trace.path()},
        {"get", key, "-o", "/tmp/never-written"},
        {"lookup", "--tokens", "1", "--model", "m", "--dtype", "d", "--layout", "l", "--pool", "kv:4KiB"}}) {
    words.insert(words.end(), {"--socket", "/does/not/exist.sock"});
    ran r = run(words);
    EXPECT_EQ(r.code, exit_code::unreachable) << words[0];
    EXPECT_THAT(r.err, HasSubstr("/does/not/exist.sock"));
    EXPECT_THAT(r.err, HasSubstr("Start one with `terraced`"));
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
}

TEST(App, TheDaemonsOptionsMayStandBeforeTheCommand) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--socket", "/does/not/exist.sock", "--json", "status"},
        {"--timeout=1", "--socket=/does/not/exist.sock", "status"}})
    EXPECT_THAT(run(words).err, HasSubstr("/does/not/exist.sock"));
  expect_usage({"--socket"}, "--socket");
}

TEST(App, ChecksArgumentsBeforeItConnects) {
  expect_usage({"replay", "/does/not/exist"}, "expected a readable file");
  expect_usage({"replay", "x", "--clients", "0"}, "--clients");
  expect_usage({"replay", "x", "--mode", "magic"}, "{auto,mapped,daemon}");
  expect_usage({"replay", "x", "--region", "big"}, "--region: expected a size such as");
  expect_usage({"get", "abc", "-o", "x"}, "expected a key of 64 hexadecimal digits");
  expect_usage({"put", "/does/not/exist"}, "/does/not/exist: expected a readable file");
  expect_usage({"put", "/proc/self/exe", "--object-bytes", "1KiB"},
               "--object-bytes: expected 4.00 KiB to 1.00 GiB");
  expect_usage({"bench", "--object-bytes", "1"}, "--object-bytes: expected");
  std::vector<std::string> lookup{"lookup", "--model", "m", "--dtype", "d", "--layout", "l", "--pool"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), lookup.begin(), lookup.end());
    return more;
  };
  expect_usage(with({"kv"}), "expected --tokens, --digests or --text");
  expect_usage(with({"kv", "--tokens", "1"}), "--pool: expected NAME:OBJECT_BYTES");
  expect_usage(with({"kv:4KiB", "--tokens", "x"}), "expected token ids");
  expect_usage(with({"kv:4KiB", "--digests", "zz"}), "hexadecimal");
}

} // namespace
} // namespace terrace::cli
