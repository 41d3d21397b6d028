#include "captured_console.hpp"
#include "cli/app.hpp"
#include "temporary_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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
  expect_usage({"trace"}, "terrace trace: expected a command (generate, info)");
  expect_usage({"trace", "info"}, "TRACE is required");
  expect_usage({"trace", "info", "--limit", "many", "x"}, "--limit: expected a number, found \"many\"");
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

} // namespace
} // namespace terrace::cli
