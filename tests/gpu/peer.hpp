// A second process for tests that need one: this program started again, with a socket between the two.
#pragma once

#include "base/unique_fd.hpp"

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace terrace {

/// One end of the socket. Messages are whole, of at most 256 bytes, with at most one descriptor.
class peer_socket {
 public:
  explicit peer_socket(unique_fd fd) : fd_(std::move(fd)) {}

  bool send(std::span<const std::byte> bytes, int descriptor = -1) const;
  bool send(const std::string& text) const { return send(std::as_bytes(std::span(text))); }
  /// Blocks until the next message; empty if the other side has ended.
  std::string receive(unique_fd* descriptor = nullptr) const;
  template <class Value>
  bool send_value(const Value& value) const {
    return send(std::as_bytes(std::span(&value, 1)));
  }
  template <class Value>
  std::optional<Value> receive_value() const {
    auto bytes = receive();
    if (bytes.size() != sizeof(Value))
      return {};
    Value value;
    bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  void close() { fd_.reset(); }

 private:
  unique_fd fd_;
};

/// The other process. Its destructor waits until it has ended.
class peer_process {
 public:
  explicit peer_process(const char* role);
  ~peer_process();
  peer_process(const peer_process&) = delete;

  peer_socket& socket() { return socket_; }
  /// Waits for its end; returns 0 if it was content.
  int wait();
  void kill();

 private:
  peer_socket socket_;
  pid_t process_ = -1;
};

/// Names the work of the other process; declare it at namespace scope. An empty answer is success, otherwise
/// it says what was wrong.
struct peer_role {
  peer_role(const char* name, std::function<std::string(peer_socket&)> run);
};

/// The main() of the other process.
int run_peer(const char* role);

} // namespace terrace
