// The limit of the request rate: an echo server for many connections on one io_uring thread.
#pragma once

#include "bench/sockets.hpp"
#include "tests/support/child_process.hpp"

#include <vector>

namespace terrace::bench {

/// A process with one thread and one ring: it receives `request_bytes` on any connection and sends `answer_bytes`.
class bare_echo_server {
 public:
  bare_echo_server(int connections, size_t request_bytes, size_t answer_bytes);

  /// The clients' ends of the connections.
  const std::vector<unique_fd>& clients() const { return clients_; }

 private:
  std::vector<unique_fd> clients_;
  test::child_process server_;
};

} // namespace terrace::bench
