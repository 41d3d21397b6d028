// A Redis client for tests: commands as bytes, replies as text.
#pragma once

#include "base/unique_fd.hpp"
#include "daemon_under_test.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::e2e {

inline std::string resp_call(const std::vector<std::string_view>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (std::string_view word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n";
    text += word;
    text += "\r\n";
  }
  return text;
}

class resp_client {
 public:
  explicit resp_client(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    connect(reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  explicit resp_client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0)
        return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void send_no_more() { ::shutdown(socket_.get(), SHUT_WR); }

  /// Returns the next reply: a value or simple text as it is, "(nil)", "(integer) 1", "-ERR ...", arrays and
  /// maps in brackets. "(end)": the daemon has closed.
  std::string reply() {
    std::string line;
    if (!read_line(line))
      return "(end)";
    switch (line.front()) {
      case '+': return line.substr(1);
      case ':': return "(integer) " + line.substr(1);
      case '_': return "(nil)";
      case '$': {
        if (line == "$-1")
          return "(nil)";
        auto bytes = std::stoul(line.substr(1));
        while (rest_.size() < bytes + 2)
          if (!read_more())
            return "(end)";
        std::string value = rest_.substr(0, bytes);
        rest_.erase(0, bytes + 2);
        return value;
      }
      case '%':
      case '*': {
        auto count = std::stoul(line.substr(1)) * (line.front() == '%' ? 2 : 1);
        std::string all = "[";
        for (size_t i = 0; i < count; ++i)
          all += (i == 0 ? "" : ", ") + reply();
        return all + "]";
      }
      default: return line;
    }
  }

  std::string call(const std::vector<std::string_view>& words) {
    send(resp_call(words));
    return reply();
  }

 private:
  void connect(const sockaddr* address, socklen_t length) {
    EXPECT_EQ(::connect(socket_.get(), address, length), 0) << std::strerror(errno);
    timeval patience{patience_ms / 1000, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  bool read_more() {
    char part[65536];
    ssize_t got = ::recv(socket_.get(), part, sizeof part, 0);
    if (got > 0)
      rest_.append(part, static_cast<size_t>(got));
    return got > 0;
  }
  bool read_line(std::string& line) {
    size_t end;
    while ((end = rest_.find("\r\n")) == std::string::npos)
      if (!read_more())
        return false;
    line = rest_.substr(0, end);
    rest_.erase(0, end + 2);
    return true;
  }

  unique_fd socket_;
  std::string rest_;
};

/// Returns a section of the configuration.
inline std::string resp_section(const std::string& path, const std::string& more = {}) {
  return "[[resp]]\naddress = \"" + path + "\"\n" + more;
}

} // namespace terrace::e2e
