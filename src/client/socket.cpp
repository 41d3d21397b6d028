#include "client/socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

namespace terrace::client::detail {

using namespace std::chrono;

namespace {

nanoseconds left(const deadline& until) { return std::max<nanoseconds>(*until - steady_clock::now(), 0ns); }

// The maximum time for connect(2) to wait for room in the listener's backlog. For the kernel, zero means no
// limit.
void limit_connect(int socket, microseconds time) {
  timeval limit{time.count() / 1'000'000, time.count() % 1'000'000};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

} // namespace

result<unique_fd> connect_socket(const std::string& path, deadline until) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(errc::bad_request, "expected the path of a socket of 1 to " +
                                       std::to_string(sizeof address.sun_path - 1) + " bytes, got \"" + path +
                                       "\"");
  std::memcpy(address.sun_path, path.data(), path.size());
  unique_fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket)
    return fail(errc::internal, "cannot make a socket: " + std::string(std::strerror(errno)));
  if (until)
    limit_connect(socket.get(), std::max<microseconds>(duration_cast<microseconds>(left(until)), 1us));
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    int reason = errno;
    if (reason == EINTR)
      continue;
    if (reason == EISCONN)
      break;
    if (reason == EAGAIN)
      return fail(errc::deadline, "the daemon at " + path + " did not accept the connection in time");
    auto code = reason == EACCES || reason == EPERM ? errc::denied : errc::gone;
    return fail(code, "cannot connect to a daemon at " + path + ": " + std::strerror(reason) +
                          (code == errc::gone ? "; is terraced running?" : ""));
  }
  if (until)
    limit_connect(socket.get(), 0us);
  return socket;
}

void ask_for_buffers(int socket, uint32_t bytes) {
  int size = static_cast<int>(std::min<uint32_t>(bytes, 1U << 30));
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

result<short> wait_for(int socket, short events, deadline until, on_signal signals) {
  for (;;) {
    pollfd watched{socket, events, 0};
    timespec limit{};
    if (until) {
      auto time = left(until);
      limit.tv_sec = duration_cast<seconds>(time).count();
      limit.tv_nsec = (time % 1s).count();
    }
    int ready = ::ppoll(&watched, 1, until ? &limit : nullptr, nullptr);
    if (ready >= 0)
      return watched.revents;
    if (errno == EINTR && signals == on_signal::returns)
      return 0;
    if (errno != EINTR)
      return fail(errc::internal,
                  "cannot wait for the daemon's socket: " + std::string(std::strerror(errno)));
  }
}

uint32_t milliseconds_left(deadline until) {
  if (!until)
    return 0;
  auto time = duration_cast<milliseconds>(left(until)).count() + 1;
  return static_cast<uint32_t>(std::min<int64_t>(time, UINT32_MAX));
}

} // namespace terrace::client::detail
