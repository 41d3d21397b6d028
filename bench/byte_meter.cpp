#include "bench/byte_meter.hpp"

#include "bench/harness.hpp"
#include "bench/sockets.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace terrace::bench {

namespace {

class relay {
 public:
  explicit relay(const std::string& socket_path) : daemon_(connect_to(socket_path)) {
    std::tie(client_, ours_) = socket_pair();
    thread_ = std::thread([this] { pass_on(); });
  }
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;
  ~relay() { thread_.join(); } // joins after the client's end has closed

  unique_fd client_end() { return std::move(client_); }
  exchanged_bytes so_far() const { return {to_daemon_, to_client_}; }

 private:
  void pass_on() {
    std::vector<uint8_t> buffer(1 << 20);
    std::array<pollfd, 2> ends{{{ours_.get(), POLLIN, 0}, {daemon_.get(), POLLIN, 0}}};
    while (::poll(ends.data(), ends.size(), -1) > 0)
      for (size_t i = 0; i < 2; ++i) {
        if (ends[i].revents == 0)
          continue;
        ssize_t got = ::recv(ends[i].fd, buffer.data(), buffer.size(), 0);
        if (got <= 0)
          return;
        // Counted before the other side can have the bytes.
        (i == 0 ? to_daemon_ : to_client_) += static_cast<size_t>(got);
        if (!write_all(ends[1 - i].fd, {buffer.data(), static_cast<size_t>(got)}))
          return;
      }
  }

  unique_fd daemon_, client_, ours_;
  std::atomic<size_t> to_daemon_ = 0, to_client_ = 0;
  std::thread thread_;
};

} // namespace

exchanged_bytes bytes_each_time(const std::string& socket_path, int times,
                                const std::function<void(client::connection&)>& prepare,
                                const std::function<void(client::connection&)>& work) {
  relay between(socket_path);
  auto connection =
      must(client::connection::over(between.client_end(), {.name = "terrace-bench"}), "connecting");
  prepare(connection);
  // The answer shows that everything posted before has been sent.
  must(connection.admin().status(), "asking for the status");
  auto before = between.so_far();
  for (int i = 0; i < times; ++i)
    work(connection);
  auto after = between.so_far();
  auto each = static_cast<size_t>(times);
  return {(after.request - before.request) / each, (after.answer - before.answer) / each};
}

} // namespace terrace::bench
