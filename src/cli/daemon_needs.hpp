// `terraced` itself says what a daemon with its configuration needs of this machine.
#pragma once

#include "cli/doctor.hpp"
#include "cli/failure.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace terrace::cli {

/// The program `terraced` beside this command, or else in PATH; empty: there is none.
std::string find_terraced();

struct needs_question {
  std::string program;                  ///< a path
  std::vector<std::string> words;       ///< as for terraced: --config, --state-dir
  std::vector<std::string> environment; ///< "NAME=value", besides this process's own
  bool tries_remotes = false;           ///< asks the stores of [[remote]] as well
};

/// Runs `terraced --print-needs` and waits for it. What it says of the configuration is in `told`: a wrong file is no error of
/// this call. Errors: it cannot be run (`usage`).
outcome<doctor_subject> ask_daemon(const needs_question& asks);

/// Reads the answer; lines with an unknown key are left out, so that a newer daemon may say more.
doctor_subject read_needs(std::string_view answer);

} // namespace terrace::cli
