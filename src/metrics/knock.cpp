#include "metrics/knock.hpp"

#include "base/unique_fd.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

namespace terrace::metrics {

bool knock(const loopback_address& address, int stopped) {
  sockaddr_storage storage{};
  socklen_t length = 0;
  if (address.host.find(':') == std::string::npos) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr);
    length = sizeof v4;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(address.port);
    inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr);
    length = sizeof v6;
  }
  unique_fd peer(socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!peer || connect(peer.get(), reinterpret_cast<const sockaddr*>(&storage), length) != 0)
    return false;
  // HTTP/1.0 has no keep-alive: the server closes after its answer, or resets the connection if it stops
  // first.
  constexpr std::string_view request = "HEAD / HTTP/1.0\r\n\r\n";
  if (send(peer.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0)
    return true;
  pollfd either[] = {{peer.get(), POLLIN, 0}, {stopped, POLLIN, 0}};
  char answer[1024];
  for (;;) {
    if (poll(either, 2, -1) < 0 && errno != EINTR)
      return false;
    if (either[1].revents != 0)
      return false;
    if (either[0].revents != 0 && recv(peer.get(), answer, sizeof answer, 0) <= 0)
      return true;
  }
}

} // namespace terrace::metrics
