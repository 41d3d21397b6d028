#include "bench/daemon_process.hpp"

#include "bench/harness.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string_view>

namespace terrace::bench {

namespace fs = std::filesystem;

namespace {

constexpr int ready_ms = 60'000; ///< far more than any start takes: a hang is an error

unique_fd notify_socket(const std::string& path) {
  unique_fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    give_up("path is too long for a socket: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    give_up("cannot bind " + path);
  return fd;
}

} // namespace

daemon_process::daemon_process(const std::string& program, const std::string& folder,
                               const daemon_options& options) {
  std::string pattern = folder + "/terrace-bench-XXXXXX";
  if (!::mkdtemp(pattern.data()))
    give_up("cannot make a folder in " + folder);
  folder_ = pattern;
  socket_path_ = folder_ + "/terrace.sock";
  fs::create_directory(folder_ + "/state");
  std::string notify_path = folder_ + "/notify.sock";
  unique_fd notify = notify_socket(notify_path);
  start(program, write_configuration(options), notify_path);
  wait_until_ready(notify.get());
}

daemon_process::~daemon_process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string daemon_process::write_configuration(const daemon_options& options) const {
  std::string path = folder_ + "/terraced.toml";
  std::ofstream out(path);
  out << "[daemon]\nworkers = " << options.workers << "\nlog_level = \"warning\"\n"
      << "[[listen]]\npath = \"" << socket_path_ << "\"\nisolated = " << (options.isolated ? "true" : "false")
      << '\n'
      << "[host]\npolicy = \"lru\"\nbytes = " << options.host_bytes << '\n'
      << "[metrics]\nenabled = false\n"
      << "[disk]\nenabled = " << (options.disk_bytes > 0 ? "true" : "false") << "\npath = \"" << folder_
      << "/state\"\n";
  if (options.disk_bytes > 0)
    out << "bytes = " << options.disk_bytes << '\n';
  return path;
}

void daemon_process::start(const std::string& program, const std::string& configuration,
                           const std::string& notify_path) {
  std::string log = folder_ + "/terraced.log";
  pid_ = ::fork();
  if (pid_ < 0)
    give_up("fork failed");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setenv("NOTIFY_SOCKET", notify_path.c_str(), 1);
    int to = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(to, STDOUT_FILENO);
    ::dup2(to, STDERR_FILENO);
    ::execl(program.c_str(), program.c_str(), "--config", configuration.c_str(), nullptr);
    ::_exit(127);
  }
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

void daemon_process::wait_until_ready(int notify) {
  std::array<pollfd, 2> wait{{{notify, POLLIN, 0}, {pidfd_.get(), POLLIN, 0}}};
  while (::poll(wait.data(), wait.size(), ready_ms) > 0 && wait[1].revents == 0) {
    std::array<char, 4096> text;
    ssize_t n = ::recv(notify, text.data(), text.size(), 0);
    if (n > 0 &&
        std::string_view(text.data(), static_cast<size_t>(n)).find("READY=1") != std::string_view::npos)
      return;
  }
  std::cerr << std::ifstream(folder_ + "/terraced.log").rdbuf() << std::endl;
  give_up("terraced did not become ready; its log is above");
}

} // namespace terrace::bench
