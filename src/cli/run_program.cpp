#include "cli/run_program.hpp"

#include "base/unique_fd.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace terrace::cli {

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts)
    all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

} // namespace

outcome<program_end> run_program(std::vector<std::string> words, std::vector<std::string> variables) {
  for (char** each = environ; *each != nullptr; ++each)
    variables.emplace_back(*each);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return failed(std::string("a pipe cannot be made: ") + std::strerror(errno));
  unique_fd reads(ends[0]), writes(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, writes.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, writes.get(), STDERR_FILENO);
  pid_t child = -1;
  const int problem = ::posix_spawnp(&child, words[0].c_str(), &actions, nullptr, pointers_to(words).data(),
                                     pointers_to(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  writes.reset();
  if (problem != 0)
    return failed(fmt::format("{} cannot be started: {}", words[0], std::strerror(problem)));
  program_end ended;
  std::array<char, 65'536> part;
  for (ssize_t got = 0; (got = ::read(reads.get(), part.data(), part.size())) != 0;)
    if (got > 0)
      ended.output.append(part.data(), static_cast<size_t>(got));
    else if (errno != EINTR)
      break;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

} // namespace terrace::cli
