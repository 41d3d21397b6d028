#include "tests/support/daemon_process.hpp"

#include "tests/support/programs.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace terrace::test {

namespace {

unique_fd notify_socket(const std::string& path) {
  unique_fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw std::runtime_error("path is too long for a socket: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ::unlink(path.c_str());
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot bind " + path);
  return fd;
}

} // namespace

daemon_process::daemon_process(std::string program, const daemon_options& options)
    : folder_(options.parent), program_(std::move(program)), before_exec_(options.before_exec) {
  configure(options);
  start();
}

daemon_process::~daemon_process() {
  if (pid_ > 0)
    kill();
}

void daemon_process::configure(const daemon_options& options) {
  std::string state_dir = options.state_dir.empty() ? state() : options.state_dir;
  std::filesystem::create_directories(state_dir);
  std::string text = "[daemon]\nworkers = " + std::to_string(options.workers) + "\nlog_level = \"" +
                     options.log_level + "\"\n" + options.daemon;
  if (options.listen.empty())
    text +=
        "[[listen]]\npath = \"" + socket() + "\"\nisolated = " + (options.isolated ? "true\n" : "false\n");
  text += options.listen;
  text += "[connection]\nstaging_bytes = \"8MiB\"\n" + options.connection;
  text += "[host]\nbytes = " + std::to_string(options.host_bytes) + "\n" + options.host;
  text += "[policy]\n" + options.policy;
  text += "[disk]\nbytes = " + std::to_string(options.disk_bytes) + "\npath = [";
  for (const std::string& path : options.disk_paths.empty() ? std::vector{state_dir} : options.disk_paths)
    text += "\"" + path + "\", ";
  text += "]\n" + options.disk;
  text += "[lease]\n" + options.lease;
  text += "[metrics]\n" + (options.metrics.empty() ? std::string("address = \"\"\n")
                                                   : "address = \"" + options.metrics + "\"\n");
  write_file(configuration_path(), text + options.more);
}

void daemon_process::start() {
  std::string notify_path = folder_ / "notify.sock";
  unique_fd notify = notify_socket(notify_path);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("pipe2 failed");
  // The daemon must never wait for the test to read its log.
  ::fcntl(pipe[1], F_SETPIPE_SZ, 1 << 20);
  log_pipe_.reset(pipe[0]);
  unique_fd theirs(pipe[1]);
  log_.clear();
  looked_at_ = 0;
  std::string configuration = configuration_path();
  std::string own_state = folder_ / "own-state";
  pid_ = ::fork();
  if (pid_ < 0)
    throw std::runtime_error("fork failed");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setenv("NOTIFY_SOCKET", notify_path.c_str(), 1);
    ::setenv("STATE_DIRECTORY", own_state.c_str(), 1);
    ::dup2(theirs.get(), STDOUT_FILENO);
    ::dup2(theirs.get(), STDERR_FILENO);
    if (before_exec_)
      before_exec_();
    ::execl(program_.c_str(), program_.c_str(), "--config", configuration.c_str(), nullptr);
    ::_exit(127);
  }
  theirs.reset();
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  await_ready(notify.get());
}

void daemon_process::await_ready(int notify) {
  std::array<pollfd, 2> watched{{{notify, POLLIN, 0}, {pidfd_.get(), POLLIN, 0}}};
  while (::poll(watched.data(), watched.size(), patience_ms) > 0 && watched[1].revents == 0) {
    std::array<char, 4096> text{};
    if (::recv(notify, text.data(), text.size() - 1, 0) > 0 && std::strstr(text.data(), "READY=1") != nullptr)
      return;
  }
  int code = kill();
  throw std::runtime_error("terraced did not become ready, its exit code is " + std::to_string(code) +
                           "; its log:\n" + log_);
}

bool daemon_process::read_log(int wait_ms) {
  pollfd watched{log_pipe_.get(), POLLIN, 0};
  if (::poll(&watched, 1, wait_ms) != 1)
    return false;
  std::array<char, 4096> text;
  ssize_t n = ::read(log_pipe_.get(), text.data(), text.size());
  if (n <= 0)
    return false;
  log_.append(text.data(), static_cast<size_t>(n));
  return true;
}

bool daemon_process::await_log(const std::string& text) {
  for (;;) {
    if (size_t at = log_.find(text, looked_at_); at != std::string::npos) {
      looked_at_ = at + text.size();
      return true;
    }
    if (!read_log(patience_ms))
      return false;
  }
}

bool daemon_process::await_logs(const std::vector<std::string>& texts) {
  const size_t begin = looked_at_;
  size_t end = begin;
  for (const std::string& text : texts) {
    looked_at_ = begin;
    if (!await_log(text))
      return false;
    end = std::max(end, looked_at_);
  }
  looked_at_ = end;
  return true;
}

bool daemon_process::has_logged(const std::string& text) {
  while (read_log(0)) {
  }
  return log_.find(text) != std::string::npos;
}

int daemon_process::wait() {
  if (pid_ < 0)
    return -1;
  while (read_log(patience_ms)) {
  }
  return reap(std::exchange(pid_, -1));
}

int daemon_process::kill() {
  if (pid_ > 0)
    ::kill(pid_, SIGKILL);
  return wait();
}

int daemon_process::terminate() {
  if (pid_ > 0)
    ::kill(pid_, SIGTERM);
  return wait();
}

} // namespace terrace::test
