// Notifications for a service manager (the sd_notify protocol: datagrams to NOTIFY_SOCKET).
#pragma once

#include <string>
#include <string_view>

namespace terrace {

/// Safe on any thread. Does nothing without a socket.
class service_notifier {
 public:
  explicit service_notifier(std::string socket) : socket_(std::move(socket)) {}
  void send(std::string_view state) const; ///< `state` is, for example, "READY=1"
 private:
  std::string socket_;
};

} // namespace terrace
