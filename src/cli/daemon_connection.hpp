// Finding and connecting to the daemon.
#pragma once

#include "cli/failure.hpp"
#include "client/client.hpp"

#include <string>

namespace CLI {
class App;
}

namespace terrace::cli {

/// The options of every command that uses a daemon.
struct daemon_options {
  std::string socket;    ///< empty: default_socket_path()
  double timeout_s = 10; ///< time for connecting, and for each request of short commands
  bool json = false;

  /// --socket (also TERRACE_SOCKET), --timeout, --json.
  void declare(CLI::App& app);

  client::deadline until() const;
};

/// Returns the default socket of terraced: for root /run/terrace/terrace.sock; for others the first that
/// exists of $XDG_RUNTIME_DIR/terrace.sock, /tmp/terrace-UID/terrace.sock and root's.
std::string default_socket_path();

/// Fails with exit_code::unreachable and what to do. `name` is shown in the daemon's list of clients. `observes`: for
/// commands that only look.
outcome<client::connection> connect(const daemon_options& options, const std::string& name,
                                    bool observes = false);

/// Returns a failure "while doing": the error of an answer, or exit_code::unreachable if the connection is
/// lost.
tl::unexpected<failure> request_failed(const client::connection& daemon, const std::string& doing,
                                       const error& e);

} // namespace terrace::cli
