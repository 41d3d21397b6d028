// How commands find and reach the daemon.
#pragma once

#include "cli/failure.hpp"
#include "client/client.hpp"

#include <string>

namespace CLI {
class App;
}

namespace terrace::cli {

/// The options that every command with a daemon has.
struct daemon_options {
  std::string socket;    ///< empty: default_socket_path()
  double timeout_s = 10; ///< of connecting, and of each single request of short commands
  bool json = false;

  /// --socket (also TERRACE_SOCKET), --timeout, --json.
  void declare(CLI::App& app);

  client::deadline until() const;
};

/// Where terraced listens when its configuration says nothing: for root /run/terrace/terrace.sock; for others the
/// first that exists of $XDG_RUNTIME_DIR/terrace.sock, /tmp/terrace-UID/terrace.sock and root's.
std::string default_socket_path();

/// Fails with exit_code::unreachable and what to do. `name` appears in the daemon's list of clients.
outcome<client::connection> connect(const daemon_options& options, const std::string& name);

/// "while doing": an answer's error, or the loss of the daemon as exit_code::unreachable.
tl::unexpected<failure> request_failed(const client::connection& daemon, const std::string& doing,
                                       const error& e);

} // namespace terrace::cli
