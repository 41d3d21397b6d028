// The daemon of a test: tests/support/daemon_process.hpp, whose log is shown when the test has failed.
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
    kill();
    if (::testing::Test::HasFailure())
      std::cerr << "the daemon's log:\n" << log() << std::flush;
  }
};

} // namespace terrace::e2e
