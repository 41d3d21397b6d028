// A program that this process starts to do work which may crash or hang, with a socket between both: the process of a GPU, a plugin of
// a remote tier.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <spawn.h>
#include <string>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace terrace {

/// Move-only. Its destructor kills the process; an owner that wants to know how it ended waits for the pidfd before. Used by one
/// thread at a time.
class child_program {
 public:
  /// The descriptor of the socket in the process; those that it is given have the next numbers.
  static constexpr int socket_number = 3;
  /// So many with the same `what` that were killed may still wait in the kernel, as for a file system that does not answer.
  static constexpr size_t killed_max = 16;

  /// Starts `program`, a path. `words` are its own name and its arguments; its descriptors are a socket
  /// (SOCK_SEQPACKET) and copies of `more`. `what` is the subject of errors. Blocks until the program has been
  /// found and begun: a file system that does not answer holds the caller. Errors: `no_space`, `not_found`.
  static result<child_program> start(const std::string& what, const std::string& program,
                                     std::vector<std::string> words, const std::vector<int>& more = {}) {
    if (killed().still_there(what) >= killed_max)
      return terrace::fail(errc::no_space,
                           what + ": too many former processes were killed and have not ended");
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      return terrace::fail(errc::no_space, "no socket for " + what + ": " + std::strerror(errno));
    child_program made;
    made.what_ = what;
    made.socket_ = std::make_shared<unique_fd>(ends[0]);
    unique_fd theirs(ends[1]);
    // Copies behind all numbers that are assigned: otherwise one would be replaced before it is copied.
    const int behind = socket_number + 1 + static_cast<int>(more.size());
    std::vector<unique_fd> copies;
    spawn_terms terms;
    for (size_t i = 0; i <= more.size(); ++i) {
      copies.emplace_back(::fcntl(i == 0 ? theirs.get() : more[i - 1], F_DUPFD_CLOEXEC, behind));
      if (!copies.back())
        return terrace::fail(errc::no_space, "no descriptor for " + what + ": " + std::strerror(errno));
      ::posix_spawn_file_actions_adddup2(&terms.files, copies.back().get(),
                                         socket_number + static_cast<int>(i));
    }
    std::vector<char*> arguments;
    for (std::string& word : words)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t pid = 0;
    const int failed =
        ::posix_spawn(&pid, program.c_str(), &terms.files, &terms.attributes, arguments.data(), environ);
    if (failed != 0)
      return terrace::fail(failed == ENOENT ? errc::not_found : errc::no_space,
                           what + " cannot be started: " + program + ": " + std::strerror(failed));
    made.pid_ = pid;
    made.pidfd_ = std::make_shared<unique_fd>(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!*made.pidfd_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      made.pid_ = 0;
      return terrace::fail(errc::no_space, "no descriptor for " + what + ": " + std::strerror(errno));
    }
    ::fcntl(made.pidfd_->get(), F_SETFD, FD_CLOEXEC);
    return made;
  }

  child_program() = default;
  child_program(child_program&& other) noexcept
      : what_(std::move(other.what_)), pid_(std::exchange(other.pid_, 0)), pidfd_(std::move(other.pidfd_)),
        socket_(std::move(other.socket_)) {}
  child_program& operator=(child_program&& other) noexcept {
    if (this != &other) {
      leave();
      what_ = std::move(other.what_);
      pid_ = std::exchange(other.pid_, 0);
      pidfd_ = std::move(other.pidfd_);
      socket_ = std::move(other.socket_);
    }
    return *this;
  }
  ~child_program() { leave(); }

  pid_t pid() const { return pid_; } ///< 0: there is none
  /// Readable once it has ended. The ring shares it, as it shares the socket; null before the start.
  const std::shared_ptr<unique_fd>& pidfd() const { return pidfd_; }
  const std::shared_ptr<unique_fd>& socket() const { return socket_; }
  void kill() {
    if (pid_ != 0)
      ::syscall(SYS_pidfd_send_signal, pidfd_->get(), SIGKILL, nullptr, 0);
  }
  /// Call after the pidfd became readable. Returns how the process ended, in words.
  std::string reap() {
    siginfo_t how{};
    if (::waitid(P_PID, static_cast<id_t>(std::exchange(pid_, 0)), &how, WEXITED | WNOHANG) != 0)
      return "it ended";
    return (how.si_code == CLD_EXITED ? "it ended with code " : "it was ended by signal ") +
           std::to_string(how.si_status);
  }

 private:
  /// The terms on which a child begins: its descriptors have their numbers, and no signal is blocked.
  struct spawn_terms {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;

    spawn_terms() {
      ::posix_spawn_file_actions_init(&files);
      ::posix_spawnattr_init(&attributes);
      sigset_t none;
      ::sigemptyset(&none);
      ::posix_spawnattr_setsigmask(&attributes, &none);
      ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    }
    ~spawn_terms() {
      ::posix_spawn_file_actions_destroy(&files);
      ::posix_spawnattr_destroy(&attributes);
    }
    spawn_terms(const spawn_terms&) = delete;
    spawn_terms& operator=(const spawn_terms&) = delete;
  };

  /// Processes that were killed by the end of their owner: each next start reaps those that have ended.
  struct killed_programs {
    std::mutex turn;
    std::vector<std::pair<std::string, pid_t>> all;

    size_t still_there(const std::string& what) {
      const std::lock_guard guard(turn);
      std::erase_if(all, [](const auto& one) { return ::waitpid(one.second, nullptr, WNOHANG) != 0; });
      return static_cast<size_t>(
          std::count_if(all.begin(), all.end(), [&](const auto& one) { return one.first == what; }));
    }
  };
  static killed_programs& killed() {
    static killed_programs them;
    return them;
  }
  void leave() {
    kill();
    if (pid_ != 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0) {
      const std::lock_guard guard(killed().turn);
      killed().all.emplace_back(what_, pid_);
    }
    pid_ = 0;
  }

  std::string what_;
  pid_t pid_ = 0;
  std::shared_ptr<unique_fd> pidfd_, socket_;
};

} // namespace terrace
