// A redis-server of Debian's package, without persistence, ended at the end of its scope. `on_valkey` runs a program of tests with
// valkey-server instead.
#pragma once

#include "base/unique_fd.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace terrace::test {

class redis_process {
 public:
  /// The server's: the one that TERRACE_STORE_SERVER names, or redis-server.
  static std::string program();
  /// True if the program is installed.
  static bool installed();

  /// Returns once the server listens on a Unix socket in the folder. Throws if it does not start; the text has what it
  /// printed.
  explicit redis_process(const std::string& folder, const std::vector<std::string>& options = {});
  /// A sentinel at this port of the loopback address, which watches the primary `name` at another port, and makes its replica
  /// the primary within seconds if it is gone.
  /// `more`: lines of its configuration.
  static redis_process sentinel(const std::string& folder, uint16_t port, const std::string& name,
                                uint16_t primary, const std::string& more = {});
  ~redis_process();
  redis_process(const redis_process&) = delete;
  redis_process& operator=(const redis_process&) = delete;

  const std::string& socket() const { return path_; }
  pid_t pid() const { return pid_; }

  /// Returns a new connection.
  unique_fd connect() const;

 private:
  struct started {};
  redis_process(started, std::vector<std::string> words, const std::string& until) {
    start(std::move(words), until);
  }
  void start(std::vector<std::string> words, const std::string& until);

  std::string path_;
  unique_fd
      output_; ///< nobody reads what it writes once it has started; what the pipe has no room for is lost
  pid_t pid_ = -1;
};

} // namespace terrace::test
