// A small HTTP server for metrics, health checks and a page: civetweb, which answers GET with what functions return.
#pragma once

#include "base/error.hpp"
#include "base/numeric_address.hpp"

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
};

/// Has threads of its own, which inherit the signal mask of the thread that creates it.
class http_server {
 public:
  /// Listens immediately. Error: `busy` if the port is in use; the text has no fix.
  static result<std::unique_ptr<http_server>> listen(const http_options& options);

  ~http_server(); ///< ends requests in flight; no function is called afterwards
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  /// The address, with the actual port after port 0.
  const numeric_address& address() const;

  /// `answer` is called on the server's threads. `open`: without the token. Thread-safe.
  void serve(std::string path, std::function<http_answer()> answer, bool open = false);

 private:
  struct running;
  explicit http_server(std::unique_ptr<running> server);
  std::unique_ptr<running> running_;
};

// Finds the process that listens on a TCP port of this machine, for the message that the port is taken.

/// Returns "process 4711 (node_exporter)"; "another process" if its descriptors are not visible to this user;
/// empty if nobody listens there. Reads /proc and blocks.
std::string port_holder(const numeric_address& at);

// Wakes an HTTP server that is stopping.

/// Sends one small request and waits for the end of its answer, or until `stopped`, an eventfd, is readable:
/// a stopping server may leave a connection in its queue unanswered. False once no further call is needed.
///
/// Civetweb checks its stop flag only when a connection arrives or after two seconds. Calling this until it returns false
/// stops the server within milliseconds; or, if the last request arrived just before the flag was set and stays
/// unanswered, after those two seconds.
bool wake_request(const numeric_address& address, int stopped);

} // namespace terrace::metrics
