// The limit of a request's latency: the same bytes travel between two processes, and nothing is done with
// them.
#pragma once

#include "bench/sockets.hpp"
#include "tests/support/child_process.hpp"

#include <cstdint>
#include <vector>

namespace terrace::bench {

/// A process that reads `request_bytes` and writes `answer_bytes`, with blocking calls.
class bare_echo {
 public:
  bare_echo(size_t request_bytes, size_t answer_bytes);

  void round_trip();

  pid_t server() const { return server_.pid(); }

 private:
  std::vector<uint8_t> request_;
  std::vector<uint8_t> answer_;
  unique_fd socket_;
  test::child_process server_;
};

} // namespace terrace::bench
