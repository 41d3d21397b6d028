// A terraced of the benchmark's own: started with a configuration written for it, killed at the end of its scope.
#pragma once

#include "base/unique_fd.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace terrace::bench {

struct daemon_options {
  uint32_t workers = 1;
  uint64_t host_bytes = 256ULL << 20;
  uint64_t disk_bytes = 0; ///< 0: no disk tier
  bool isolated = false;   ///< the one group that clients meet
};

class daemon_process {
 public:
  /// Returns when the daemon has said READY=1; ends the benchmark, showing the daemon's log, if it ends instead.
  daemon_process(const std::string& program, const std::string& folder, const daemon_options& options);
  daemon_process(const daemon_process&) = delete;
  daemon_process& operator=(const daemon_process&) = delete;
  ~daemon_process();

  const std::string& socket_path() const { return socket_path_; }
  std::string state_path() const { return folder_ + "/state"; }
  pid_t pid() const { return pid_; }

 private:
  std::string write_configuration(const daemon_options& options) const;
  void start(const std::string& program, const std::string& configuration, const std::string& notify_path);
  void wait_until_ready(int notify);

  std::string folder_;
  std::string socket_path_;
  pid_t pid_ = 0;
  unique_fd pidfd_;
};

} // namespace terrace::bench
