// Runs the command `terrace` against a test's daemon.
#pragma once

#include "daemon_under_test.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace terrace::e2e {

inline ended_program terrace(const daemon_under_test& daemon, std::vector<std::string> words) {
  words.insert(words.begin(), program("TERRACE"));
  words.insert(words.end(), {"--socket", daemon.socket()});
  return run(words);
}

/// Returns the output with --json; a failure of the command fails the test.
inline nlohmann::json answer_of(const daemon_under_test& daemon, std::vector<std::string> words) {
  words.emplace_back("--json");
  auto done = terrace(daemon, std::move(words));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  return done.exit_code == 0 ? nlohmann::json::parse(done.out) : nlohmann::json();
}

} // namespace terrace::e2e
