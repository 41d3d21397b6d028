// Scrapes an exposition once for a test.
#pragma once

#include "base/unique_fd.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace terrace::test {

/// Returns what a server on loopback answers to a request without keep-alive, so that the end of the stream ends it.
inline std::string http(uint16_t port, const std::string& request) {
  unique_fd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return "no connection";
  if (send(socket_fd.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return "no request";
  std::string answer;
  char piece[4096];
  for (ssize_t n; (n = recv(socket_fd.get(), piece, sizeof piece, 0)) > 0;)
    answer.append(piece, static_cast<size_t>(n));
  return answer;
}

/// Returns the body of `GET /metrics`.
inline std::string scrape(uint16_t port) {
  std::string answer = http(port, "GET /metrics HTTP/1.0\r\n\r\n");
  auto body = answer.find("\r\n\r\n");
  return body == std::string::npos ? answer : answer.substr(body + 4);
}

/// Returns the number after a series of an exposition; -1: there is none.
inline double number_behind(const std::string& text, const std::string& series) {
  auto at = text.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + series.size() + 2, nullptr);
}

/// Returns a loopback port that nobody listens on at the moment.
inline uint16_t free_port() {
  unique_fd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      getsockname(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return 0;
  return ntohs(address.sin_port);
}

} // namespace terrace::test
