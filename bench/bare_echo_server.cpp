#include "bench/bare_echo_server.hpp"

#include "bench/harness.hpp"

#include <liburing.h>

namespace terrace::bench {

namespace {

struct peer {
  int fd = -1;
  bool sending = false;
  size_t done = 0; ///< bytes of the request received, or of the answer sent
  std::vector<uint8_t> buffer;
};

void serve(std::vector<peer>& peers, size_t request_bytes, size_t answer_bytes) {
  io_uring ring;
  unsigned flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  if (io_uring_queue_init(256, &ring, flags) != 0 && io_uring_queue_init(256, &ring, 0) != 0)
    give_up("io_uring is not permitted here");
  std::vector<uint8_t> answer(answer_bytes, 2);
  auto submit = [&](peer& p) {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring);
    if (!sqe) {
      io_uring_submit(&ring);
      sqe = io_uring_get_sqe(&ring);
    }
    if (p.sending)
      io_uring_prep_send(sqe, p.fd, answer.data() + p.done, answer_bytes - p.done, MSG_NOSIGNAL);
    else
      io_uring_prep_recv(sqe, p.fd, p.buffer.data() + p.done, request_bytes - p.done, 0);
    io_uring_sqe_set_data(sqe, &p);
  };
  for (peer& p : peers)
    submit(p);
  while (true) {
    if (io_uring_submit_and_wait(&ring, 1) < 0)
      continue; // interrupted by a signal
    io_uring_cqe* cqe;
    unsigned head, seen = 0;
    io_uring_for_each_cqe(&ring, head, cqe) {
      ++seen;
      auto& p = *static_cast<peer*>(io_uring_cqe_get_data(cqe));
      if (cqe->res <= 0)
        return; // a client has gone, so the benchmark has ended
      p.done += static_cast<size_t>(cqe->res);
      if (p.done == (p.sending ? answer_bytes : request_bytes)) {
        p.done = 0;
        p.sending = !p.sending;
      }
      submit(p);
    }
    io_uring_cq_advance(&ring, seen);
  }
}

} // namespace

bare_echo_server::bare_echo_server(int connections, size_t request_bytes, size_t answer_bytes) {
  std::vector<unique_fd> servers;
  for (int i = 0; i < connections; ++i) {
    auto [ours, theirs] = socket_pair();
    clients_.push_back(std::move(ours));
    servers.push_back(std::move(theirs));
  }
  server_ = test::child_process([&] {
    clients_.clear();
    std::vector<peer> peers(servers.size());
    for (size_t i = 0; i < peers.size(); ++i) {
      peers[i].fd = servers[i].get();
      peers[i].buffer.resize(request_bytes);
    }
    serve(peers, request_bytes, answer_bytes);
  });
}

} // namespace terrace::bench
