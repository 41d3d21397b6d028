#include "tests/support/programs.hpp"

#include "tests/support/temporary_folder.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace terrace::test {

std::string program(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr)
    throw std::runtime_error(std::string(variable) + " is not set; run this program with `meson test`");
  return path;
}

bool sanitized(const std::string& name) {
  const char* names = std::getenv("SANITIZERS");
  return names != nullptr && std::string(names) != "none" &&
         std::string(names).find(name) != std::string::npos;
}

int reap(int pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int start_program(const std::vector<std::string>& words, const std::function<void()>& before) {
  const pid_t pid = ::fork();
  if (pid != 0)
    return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  before();
  std::vector<char*> arguments;
  for (const std::string& word : words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

ended_program run(const std::vector<std::string>& words, const std::string& input,
                  const std::function<void()>& before) {
  // Files hold any amount of output while nobody reads.
  temporary_folder folder;
  write_file(folder / "in", input);
  const int pid = start_program(words, [&] {
    ::dup2(::open((folder / "in").c_str(), O_RDONLY), STDIN_FILENO);
    ::dup2(::open((folder / "out").c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    ::dup2(::open((folder / "err").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    if (before)
      before();
  });
  ended_program ended;
  ended.exit_code = reap(pid);
  ended.out = read_file(folder / "out");
  ended.err = read_file(folder / "err");
  return ended;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace terrace::test
