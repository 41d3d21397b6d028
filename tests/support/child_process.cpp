#include "tests/support/child_process.hpp"

#include "tests/support/programs.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>

namespace terrace::test {

namespace {
constexpr int uncaught = 99; ///< exit code of a child whose work threw
}

void child_voice::say(char word) const { (void) !::send(fd_, &word, 1, MSG_NOSIGNAL); }

void child_voice::stay() const {
  char word;
  while (::read(fd_, &word, 1) > 0) {
  }
}

child_process::child_process(const std::function<int(const child_voice&)>& work) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
    throw std::runtime_error("socketpair failed");
  ours_.reset(pair[0]);
  unique_fd theirs(pair[1]);
  pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0)
    throw std::runtime_error("fork failed");
  if (pid_ > 0)
    return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ours_.reset();
  if (::getppid() != parent)
    ::_exit(0); // the parent ended before the line above
  // Nothing of the parent may be unwound here: its folders and its daemon belong to the parent.
  try {
    ::_exit(work(child_voice(theirs.get())));
  } catch (...) {
    ::_exit(uncaught);
  }
}

child_process::~child_process() {
  if (pid_ > 0)
    kill();
}

char child_process::await_word() const {
  pollfd watched{ours_.get(), POLLIN, 0};
  char word = 0;
  if (::poll(&watched, 1, patience_ms) != 1 || ::read(ours_.get(), &word, 1) != 1)
    return 0;
  return word;
}

int child_process::wait() { return reap(std::exchange(pid_, -1)); }

int child_process::kill() {
  ::kill(pid_, SIGKILL);
  return wait();
}

} // namespace terrace::test
