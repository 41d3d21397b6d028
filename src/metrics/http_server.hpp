// A small HTTP server for metrics, health checks and a page: answers GET with what functions return, with TLS if wanted.
#pragma once

#include "base/error.hpp"
#include "base/numeric_address.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace terrace::metrics {

struct http_answer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

struct http_options {
  numeric_address address;
  std::string token; ///< empty: everybody may ask. Otherwise the password of Basic or the token of Bearer
  /// File in PEM with a certificate, those above it, and its private key; empty: without TLS. It is read again for the next
  /// connection when it has changed.
  std::string tls_file;
  std::function<void(const std::string&)> warn = [](const std::string&) {}; ///< called on the server's thread
};

/// Reads the file of `http_options::tls_file`, which blocks. Errors: `bad_request`, with what was expected.
result<void> check_tls_file(const std::string& file);

/// Has one thread, which receives no signals. A connection has one request, 10 s and 16 KiB for it; of more than
/// `peers_max` the oldest ends.
class http_server {
 public:
  static constexpr size_t peers_max = 64;

  /// Listens immediately. Errors: `busy` if it cannot listen at the address, and the text has no fix; `bad_request` for the
  /// file of TLS.
  static result<std::unique_ptr<http_server>> listen(const http_options& options);

  ~http_server(); ///< ends connections; no function is called afterwards
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  /// The address, with the actual port after port 0.
  const numeric_address& address() const;

  /// `answer` is called on the server's thread. `open`: without the token. Thread-safe.
  void serve(std::string path, std::function<http_answer()> answer, bool open = false);

  /// Calls `work` on the server's thread now and after each `period`. Call it once. Thread-safe.
  void repeat(std::chrono::milliseconds period, std::function<void()> work);

 private:
  class running;
  explicit http_server(std::unique_ptr<running> server);
  std::unique_ptr<running> running_;
};

// Finds the process that listens on a TCP port of this machine, for the message that the port is taken.

/// Returns "process 4711 (node_exporter)"; "another process" if its descriptors are not visible to this user;
/// empty if nobody listens there. Reads /proc and blocks.
std::string port_holder(const numeric_address& at);

} // namespace terrace::metrics
