// Notifications for a service manager (the sd_notify protocol: datagrams to NOTIFY_SOCKET).
#pragma once

#include "base/unique_fd.hpp"

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>

namespace terrace {

/// Safe on any thread. Does nothing without a socket.
class service_notifier {
 public:
  explicit service_notifier(std::string socket) : socket_(std::move(socket)) {}
  void send(std::string_view state) const; ///< `state` is, for example, "READY=1"
 private:
  std::string socket_;
};

inline void service_notifier::send(std::string_view state) const {
  sockaddr_un address{};
  if (socket_.empty() || socket_.size() >= sizeof address.sun_path)
    return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_.front() == '@') // the name is that of an abstract socket
    address.sun_path[0] = '\0';
  unique_fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  // Serving continues if the service manager does not listen.
  (void) !::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                   reinterpret_cast<const sockaddr*>(&address), length);
}

} // namespace terrace
