#include "bench/bare_echo.hpp"

#include "bench/harness.hpp"

namespace terrace::bench {

bare_echo::bare_echo(size_t request_bytes, size_t answer_bytes)
    : request_(request_bytes, 1), answer_(answer_bytes, 2) {
  auto [ours, theirs] = socket_pair();
  server_ = test::child_process([&, fd = theirs.get()] {
    ours.reset(); // so that the end of the parent ends this loop as well
    while (read_all(fd, request_) && write_all(fd, answer_)) {
    }
  });
  socket_ = std::move(ours);
}

void bare_echo::round_trip() {
  if (!write_all(socket_.get(), request_) || !read_all(socket_.get(), answer_))
    give_up("the bare echo's process is gone");
}

} // namespace terrace::bench
