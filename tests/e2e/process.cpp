#include "process.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace terrace::e2e {

namespace {

constexpr int uncaught =
    99; ///< exit code of a child whose work threw, such as one whose daemon was gone already

int reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

std::string program(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr) {
    ADD_FAILURE() << variable << " is not set; run this program with `meson test e2e`";
    std::abort();
  }
  return path;
}

ended_program run(const std::vector<std::string>& words, const std::string& input) {
  // Files hold any amount of output without anybody reading meanwhile.
  scratch_folder folder;
  write_file(folder / "in", input);
  pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(::open((folder / "in").c_str(), O_RDONLY), STDIN_FILENO);
    ::dup2(::open((folder / "out").c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    ::dup2(::open((folder / "err").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : words)
      arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ended_program ended;
  ended.exit_code = reap(pid);
  ended.out = read_file(folder / "out");
  ended.err = read_file(folder / "err");
  return ended;
}

scratch_folder::scratch_folder() : path_("/tmp/terrace-e2e-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr)
    throw std::runtime_error("cannot make a folder under /tmp");
  ::chmod(path_.c_str(), 0755);
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
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

void child_voice::say(char word) const { (void) !::send(fd_, &word, 1, MSG_NOSIGNAL); }

void child_voice::stay() const {
  char word;
  while (::read(fd_, &word, 1) > 0) {
  }
}

forked_child::forked_child(const std::function<int(const child_voice&)>& work) {
  std::array<int, 2> pair{};
  (void) !::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data());
  ours_.reset(pair[0]);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ours_.reset();
    // Nothing of the test may be unwound here: its folders and its daemon are the parent's.
    try {
      ::_exit(work(child_voice(pair[1])));
    } catch (...) {
      ::_exit(uncaught);
    }
  }
  ::close(pair[1]);
}

forked_child::~forked_child() {
  if (pid_ > 0)
    kill();
}

char forked_child::await_word() const {
  pollfd watched{ours_.get(), POLLIN, 0};
  char word = 0;
  if (::poll(&watched, 1, patience_ms) != 1 || ::read(ours_.get(), &word, 1) != 1)
    return 0;
  return word;
}

int forked_child::wait() { return reap(std::exchange(pid_, -1)); }

int forked_child::kill() {
  ::kill(pid_, SIGKILL);
  return wait();
}

} // namespace terrace::e2e
