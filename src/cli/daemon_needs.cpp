#include "cli/daemon_needs.hpp"

#include "cli/run_program.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

namespace terrace::cli {

namespace {

bool may_run(const std::filesystem::path& program) {
  return std::filesystem::is_regular_file(program) && ::access(program.c_str(), X_OK) == 0;
}

} // namespace

std::string find_terraced() {
  std::error_code failed;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", failed);
  for (const char* place : {"terraced", "../daemon/terraced"}) // installed, or in a build folder
    if (auto beside = own.parent_path() / place; !failed && may_run(beside))
      return beside.lexically_normal();
  const char* folders = std::getenv("PATH");
  std::istringstream all(folders != nullptr ? folders : "/usr/bin:/usr/sbin");
  for (std::string folder; std::getline(all, folder, ':');)
    if (auto program = std::filesystem::path(folder) / "terraced"; !folder.empty() && may_run(program))
      return program;
  return {};
}

outcome<doctor_subject> ask_daemon(const needs_question& asks) {
  std::vector<std::string> words{asks.program, "--print-needs"};
  if (asks.tries_remotes)
    words.emplace_back("--try-remotes");
  words.insert(words.end(), asks.words.begin(), asks.words.end());
  auto ended = run_program(std::move(words), asks.environment);
  if (!ended)
    return bad_usage(ended.error().text);
  if (ended->code != 0)
    return bad_usage(asks.program + " --print-needs ended with " + std::to_string(ended->code) + ": " +
                     ended->output);
  return read_needs(ended->output);
}

doctor_subject read_needs(std::string_view answer) {
  doctor_subject subject;
  std::istringstream lines{std::string(answer)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::string key, value, fix, more;
    std::getline(parts, key, '\t');
    std::getline(parts, value, '\t');
    std::getline(parts, fix, '\t');
    std::getline(parts, more);
    if (key == "failure" || key == "warning")
      subject.told.push_back({"configuration", key == "failure" ? health::failure : health::warning, value,
                              fix.empty() ? "correct the file; terraced --check reads it again" : fix});
    else if (key == "socket")
      subject.sockets.push_back(value);
    else if (key == "disk")
      subject.disks.push_back(value);
    else if (key == "makes")
      subject.makes.push_back(value);
    else if (key == "host_bytes")
      subject.host_bytes = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "disk_bytes")
      subject.disk_bytes = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "metrics")
      subject.metrics = value;
    else if (key == "remote")
      subject.remotes.push_back({value, fix, more});
  }
  return subject;
}

} // namespace terrace::cli
