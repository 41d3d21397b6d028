#include "bench/child_process.hpp"

#include "bench/harness.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace terrace::bench {

child_process::child_process(const std::function<void()>& body) {
  pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0)
    give_up("fork failed");
  if (pid_ > 0)
    return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent)
    body();
  ::_exit(0);
}

child_process::~child_process() {
  if (pid_ <= 0)
    return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

double cpu_seconds_of(pid_t pid) {
  double nanoseconds = 0;
  for (auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    double on_cpu = 0;
    std::ifstream(task.path() / "schedstat") >> on_cpu;
    nanoseconds += on_cpu;
  }
  return nanoseconds * 1e-9;
}

} // namespace terrace::bench
