#include "cli/daemon_connection.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <unistd.h>
#include <vector>

namespace terrace::cli {

void daemon_options::declare(CLI::App& app) {
  app.add_option("--socket", socket, "The daemon's socket (default " + default_socket_path() + ")")
      ->envname("TERRACE_SOCKET");
  app.add_option("--timeout", timeout_s, "Seconds to wait for the daemon")
      ->check(CLI::Range(0.001, 86'400.0))
      ->capture_default_str();
  app.add_flag("--json", json, "Print JSON");
}

client::deadline daemon_options::until() const {
  return client::within(std::chrono::nanoseconds(static_cast<int64_t>(timeout_s * 1e9)));
}

std::string default_socket_path() {
  std::string system = "/run/terrace/terrace.sock";
  if (getuid() == 0)
    return system;
  std::vector<std::string> candidates;
  if (const char* directory = std::getenv("XDG_RUNTIME_DIR"); directory != nullptr && *directory != '\0')
    candidates.push_back(std::string(directory) + "/terrace.sock");
  candidates.push_back(fmt::format("/tmp/terrace-{}/terrace.sock", getuid()));
  candidates.push_back(system);
  std::error_code ignored;
  for (const std::string& path : candidates)
    if (std::filesystem::exists(path, ignored))
      return path;
  return candidates.front();
}

outcome<client::connection> connect(const daemon_options& options, const std::string& name, bool observes) {
  client::connect_options to;
  to.path = options.socket.empty() ? default_socket_path() : options.socket;
  to.name = name;
  to.observes = observes;
  auto connected = client::connection::connect(to, options.until());
  if (connected)
    return std::move(*connected);
  const error& e = connected.error();
  if (e.code == errc::bad_request)
    return bad_usage("--socket: " + e.text);
  bool nobody_there = e.code == errc::gone || e.code == errc::not_found || e.code == errc::deadline;
  return tl::unexpected(failure{
      exit_code::unreachable,
      e.text + (nobody_there ? " Start one with `terraced`, or give its socket with --socket." : "")});
}

tl::unexpected<failure> request_failed(const client::connection& daemon, const std::string& doing,
                                       const error& e) {
  if (!daemon.alive())
    return tl::unexpected(
        failure{exit_code::unreachable,
                fmt::format("{}: the connection to the daemon was lost ({}); see its log", doing, e.text)});
  return failed(doing, e);
}

} // namespace terrace::cli
