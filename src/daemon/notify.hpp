// What a service manager wants to hear (sd_notify's protocol: datagrams to NOTIFY_SOCKET).
#pragma once

#include <string>
#include <string_view>

namespace terrace {

/// Any thread. Without a socket it does nothing.
class service_notifier {
 public:
  explicit service_notifier(std::string socket) : socket_(std::move(socket)) {}
  void send(std::string_view state) const; ///< such as "READY=1"
 private:
  std::string socket_;
};

} // namespace terrace
