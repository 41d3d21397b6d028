// The limit of latency between threads that poll: the same bytes, and neither side ever sleeps.
#pragma once

#include "bench/sockets.hpp"
#include "tests/support/child_process.hpp"

#include <cstdint>
#include <vector>

namespace terrace::bench {

/// Like `bare_echo`, with receives that do not block on both sides.
class polling_echo {
 public:
  polling_echo(size_t request_bytes, size_t answer_bytes);

  void round_trip();

  pid_t server() const { return server_.pid(); }

 private:
  std::vector<uint8_t> request_;
  std::vector<uint8_t> answer_;
  unique_fd socket_;
  test::child_process server_;
};

} // namespace terrace::bench
