// The daemon of a test: tests/support/daemon_process.hpp. `terrace check` checks it at the test's end, and
// its log is shown if the test has failed.
#pragma once

#include "tests/support/daemon_process.hpp"
#include "tests/support/programs.hpp"

#include <gtest/gtest.h>

#include <iostream>

namespace terrace::e2e {

using test::daemon_options;
using test::ended_program;
using test::mebibyte;
using test::patience_ms;
using test::program;
using test::read_file;
using test::run;
using test::temporary_folder;
using test::write_file;

class daemon_under_test : public test::daemon_process {
 public:
  explicit daemon_under_test(const daemon_options& options = {})
      : daemon_process(program("TERRACED"), options) {}
  ~daemon_under_test() {
    check_at_end();
    kill();
    if (::testing::Test::HasFailure())
      std::cerr << "the daemon's log:\n" << log() << std::flush;
  }

  /// Skips the check at the end, for tests of a daemon that does not answer.
  void is_not_checked() { checked_ = false; }

  /// Recounts everything of the daemon until no request was in progress. Each difference fails the test.
  /// Returns false if the daemon could not be asked, because it has ended, stands still or is full.
  bool check();

 private:
  void check_at_end() {
    if (checked_ && pid() > 0)
      check();
  }

  bool checked_ = true;
};

} // namespace terrace::e2e
