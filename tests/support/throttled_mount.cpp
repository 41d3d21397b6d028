#include "tests/support/throttled_mount.hpp"

#include "tests/support/programs.hpp"

#include <sys/mount.h>
#include <sys/prctl.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace terrace::test {

throttled_mount::throttled_mount(const std::string& program, uint64_t read_bytes_per_s) {
  if (program.empty() || !std::filesystem::exists(program))
    return;
  std::string behind = folder_ / "behind", speed = std::to_string(read_bytes_per_s), at = path();
  std::filesystem::create_directory(behind);
  std::filesystem::create_directory(at);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return;
  unique_fd read_end(ends[0]), write_end(ends[1]);
  server_ = ::fork();
  if (server_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(write_end.get(), STDOUT_FILENO);
    ::execl(program.c_str(), program.c_str(), behind.c_str(), at.c_str(), speed.c_str(), nullptr);
    ::_exit(127);
  }
  write_end.reset();
  // The program prints "mounted", or ends.
  char word;
  ssize_t got;
  while ((got = ::read(read_end.get(), &word, 1)) == -1 && errno == EINTR) {
  }
  mounted_ = got == 1;
}

throttled_mount::~throttled_mount() {
  if (mounted_)
    ::umount2(path().c_str(), MNT_DETACH);
  if (server_ > 0) {
    ::kill(server_, SIGKILL);
    reap(server_);
  }
}

} // namespace terrace::test
