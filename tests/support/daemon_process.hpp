// A real terraced with a configuration of its own, in a folder of its own.
//
//   daemon_process daemon(program("TERRACED"), {.host_bytes = 32 << 20});
//   auto client = connect(daemon.socket());
//   daemon.await_log("joined");                     // blocks until the log says so
//   daemon.terminate();                             // 0
//
// It uses no test framework, because benchmarks start daemons too. Any failure at a start is an exception.
#pragma once

#include "base/unique_fd.hpp"
#include "tests/support/temporary_folder.hpp"

#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace terrace::test {

constexpr uint64_t mebibyte = 1ULL << 20;

struct daemon_options {
  uint32_t workers = 2;
  std::string daemon = {}; ///< lines of [daemon]
  uint64_t host_bytes = 32 * mebibyte;
  std::string host;                    ///< lines of [host]
  uint64_t disk_bytes = 0;             ///< 0: no disk tier
  std::string policy;                  ///< lines of [policy]
  std::string disk;                    ///< lines of [disk]
  std::vector<std::string> disk_paths; ///< directories of the disk, one per device; default: `state_dir`
  std::string state_dir;               ///< default: a folder of the daemon's own
  std::string listen;                  ///< [[listen]] sections; default: one, at `socket()`
  std::string connection;              ///< lines of [connection]
  std::string lease =
      "host_percent = 100\nconnection_percent = 100\n"; ///< lines of [lease]: tests fill memory with leases
  std::string metrics;                                  ///< address; default: off
  std::string log_level = "info";
  std::string more;                      ///< further sections
  bool isolated = false;                 ///< applies to the group of the default [[listen]]
  std::filesystem::path parent = "/tmp"; ///< folder in which the daemon's folder is made
  std::function<void()> before_exec;     ///< runs in the daemon's process before its program does
};

class daemon_process {
 public:
  /// Starts the daemon and waits until it is ready. Throws, with its log, if it does not get ready.
  daemon_process(std::string program, const daemon_options& options);

  /// Kills the daemon if it still runs.
  ~daemon_process();

  daemon_process(const daemon_process&) = delete;
  daemon_process& operator=(const daemon_process&) = delete;

  std::string socket() const { return folder_ / "terrace.sock"; }
  std::string second_socket() const {
    return folder_ / "second.sock";
  }                                                       ///< for a [[listen]] of the test's own
  std::string state() const { return folder_ / "state"; } ///< the default of `state_dir`
  std::string configuration_path() const { return folder_ / "terraced.toml"; }
  const temporary_folder& folder() const { return folder_; }
  pid_t pid() const { return pid_; } ///< -1 after its end

  /// Writes the configuration anew; it takes effect at SIGHUP or `start`.
  void configure(const daemon_options& options);

  /// Starts the daemon after its end, with the same configuration and folder.
  void start();

  void signal(int number) const { ::kill(pid_, number); }

  /// Blocks until a line of the log has the text; looks only at lines that it has not looked at before.
  /// Returns false if the daemon ended.
  bool await_log(const std::string& text);
  /// Waits for several texts, whose lines may come in any order, like those of different actors.
  bool await_logs(const std::vector<std::string>& texts);

  /// Whether the log has the text by now; does not wait.
  bool has_logged(const std::string& text);

  /// Sends SIGTERM, reads the whole log, and returns the exit code.
  int terminate();

  /// Waits for its end; returns the exit code, or 128 + signal.
  int wait();
  int kill();

  /// All lines since its start that were read so far.
  const std::string& log() const { return log_; }

 private:
  void await_ready(int notify);
  bool read_log(int wait_ms);

  temporary_folder folder_;
  std::string program_;
  std::function<void()> before_exec_;
  pid_t pid_ = -1;
  unique_fd pidfd_;
  unique_fd log_pipe_;
  std::string log_;
  size_t looked_at_ = 0;
};

} // namespace terrace::test
