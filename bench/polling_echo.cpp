#include "bench/polling_echo.hpp"

#include "bench/harness.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <span>

namespace terrace::bench {

namespace {

/// Returns false at the end of the stream.
bool poll_all(int fd, std::span<uint8_t> into) {
  while (!into.empty()) {
    ssize_t n = ::recv(fd, into.data(), into.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      continue;
    if (n <= 0)
      return false;
    into = into.subspan(static_cast<size_t>(n));
  }
  return true;
}

} // namespace

polling_echo::polling_echo(size_t request_bytes, size_t answer_bytes)
    : request_(request_bytes, 1), answer_(answer_bytes, 2) {
  auto [ours, theirs] = socket_pair();
  server_ = test::child_process([&, fd = theirs.get()] {
    ours.reset(); // so that the end of the parent ends this loop as well
    while (poll_all(fd, request_) && write_all(fd, answer_)) {
    }
  });
  socket_ = std::move(ours);
}

void polling_echo::round_trip() {
  if (!write_all(socket_.get(), request_) || !poll_all(socket_.get(), answer_))
    give_up("the polling echo's process is gone");
}

} // namespace terrace::bench
