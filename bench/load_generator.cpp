#include "bench/load_generator.hpp"

#include "bench/harness.hpp"
#include "bench/sockets.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>

namespace terrace::bench {

double requests_per_second(std::span<const unique_fd> sockets, std::span<const uint8_t> request,
                           size_t answer_bytes, double seconds) {
  unique_fd set(::epoll_create1(EPOLL_CLOEXEC));
  std::vector<size_t> received(sockets.size());
  std::vector<uint8_t> buffer(answer_bytes);
  for (size_t i = 0; i < sockets.size(); ++i) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    if (::epoll_ctl(set.get(), EPOLL_CTL_ADD, sockets[i].get(), &event) != 0)
      give_up("epoll_ctl failed");
    if (!write_all(sockets[i].get(), request))
      give_up("a connection ended");
  }
  uint64_t answers = 0;
  size_t open = sockets.size();
  double begin = seconds_now(), end = begin + seconds, now = begin;
  std::array<epoll_event, 64> events;
  while (open > 0) {
    int n = ::epoll_wait(set.get(), events.data(), events.size(), -1);
    now = seconds_now();
    for (int i = 0; i < n; ++i) {
      size_t which = events[static_cast<size_t>(i)].data.u64;
      int fd = sockets[which].get();
      ssize_t got = ::recv(fd, buffer.data(), answer_bytes - received[which], 0);
      if (got <= 0)
        give_up("a connection ended");
      received[which] += static_cast<size_t>(got);
      if (received[which] < answer_bytes)
        continue;
      received[which] = 0;
      ++answers;
      if (now >= end)
        --open;
      else if (!write_all(fd, request))
        give_up("a connection ended");
    }
  }
  return static_cast<double>(answers) / (seconds_now() - begin);
}

} // namespace terrace::bench
