#include "bench/sockets.hpp"

#include "bench/harness.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace terrace::bench {

namespace {

constexpr int buffer_bytes = 1 << 20;

void widen(int fd) {
  // Root exceeds the system's limit; other users get as much as it grants, like the daemon itself.
  for (auto [forced, plain] : {std::pair(SO_SNDBUFFORCE, SO_SNDBUF), std::pair(SO_RCVBUFFORCE, SO_RCVBUF)})
    if (::setsockopt(fd, SOL_SOCKET, forced, &buffer_bytes, sizeof buffer_bytes) != 0)
      ::setsockopt(fd, SOL_SOCKET, plain, &buffer_bytes, sizeof buffer_bytes);
}

} // namespace

std::pair<unique_fd, unique_fd> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    give_up("socketpair failed");
  widen(ends[0]);
  widen(ends[1]);
  return {unique_fd(ends[0]), unique_fd(ends[1])};
}

unique_fd connect_to(const std::string& path) {
  unique_fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    give_up("socket path is too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  widen(fd.get());
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    give_up("cannot connect to " + path);
  return fd;
}

bool read_all(int fd, std::span<uint8_t> into) {
  while (!into.empty()) {
    ssize_t n = ::read(fd, into.data(), into.size());
    if (n <= 0)
      return false;
    into = into.subspan(static_cast<size_t>(n));
  }
  return true;
}

bool write_all(int fd, std::span<const uint8_t> from) {
  while (!from.empty()) {
    ssize_t n = ::send(fd, from.data(), from.size(), MSG_NOSIGNAL);
    if (n <= 0)
      return false;
    from = from.subspan(static_cast<size_t>(n));
  }
  return true;
}

} // namespace terrace::bench
