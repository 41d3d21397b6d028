// The socket for Redis clients compared with redis-server: the same client on a Unix socket, 16 commands in
// flight.
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/placement.hpp"
#include "bench/sockets.hpp"
#include "tests/support/redis_process.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

namespace terrace::bench {

namespace {

constexpr size_t commands_in_flight = 16;
constexpr size_t resp_keys = 64;

std::string command_of(bool stores, size_t key, const std::string& value) {
  std::string name = "key:" + std::to_string(1000 + key);
  std::string text = stores ? "*3\r\n$3\r\nSET\r\n" : "*2\r\n$3\r\nGET\r\n";
  text += "$" + std::to_string(name.size()) + "\r\n" + name + "\r\n";
  if (stores)
    text += "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
  return text;
}

/// Successive commands on one connection; all replies have one size.
class redis_load {
 public:
  redis_load(const std::string& socket, bool stores, uint64_t value_bytes) : to_(connect_to(socket)) {
    std::string value(value_bytes, 'v');
    for (size_t key = 0; key < resp_keys; ++key)
      commands_.push_back(command_of(stores, key, value));
    reply_bytes_ = stores ? 5 : 1 + std::to_string(value_bytes).size() + 2 + value_bytes + 2;
    buffer_.resize(std::max<size_t>(1 << 20, reply_bytes_));
  }

  /// Returns commands per second.
  double run(size_t commands) {
    double seconds = seconds_of([&] {
      size_t sent = 0;
      uint64_t received = 0;
      while (received < commands * reply_bytes_) {
        std::string next;
        size_t answered = received / reply_bytes_;
        for (; sent < commands && sent - answered < commands_in_flight; ++sent) {
          const std::string& command = commands_[sent % resp_keys];
          if (command.size() > 4096)
            write(command);
          else
            next += command;
        }
        if (!next.empty())
          write(next);
        ssize_t got = ::recv(to_.get(), buffer_.data(), buffer_.size(), 0);
        if (got <= 0 || buffer_[0] == '-')
          give_up("the server of Redis' protocol does not answer as expected");
        received += static_cast<uint64_t>(got);
      }
    });
    return static_cast<double>(commands) / seconds;
  }

 private:
  void write(const std::string& bytes) {
    if (!write_all(to_.get(), {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}))
      give_up("the server of Redis' protocol has closed");
  }
  unique_fd to_;
  std::vector<std::string> commands_;
  uint64_t reply_bytes_ = 0;
  std::vector<char> buffer_;
};

void resp_figures(const settings& options, const reporter& report, bool stores) {
  if (!test::redis_process::installed())
    give_up("no redis-server on this machine; install the package `redis-server`");
  std::string door = options.folder + "/resp-bench.sock";
  bench_daemon daemon(options, {.more = "[[resp]]\naddress = \"" + door + "\"\n"});
  test::redis_process redis(options.folder);
  // At times the kernel puts a client and its server on one processor, and small values then take half the
  // time.
  struct {
    const char* name;
    uint64_t bytes;
    size_t commands;
    int server; ///< processor of the server; the client has the first one
  } sizes[] = {{"64B_one_cpu", 64, 200'000, 0},
               {"64B", 64, 200'000, 1},
               {"1MiB", 1 << 20, 1024, 1},
               {"4MiB", 4 << 20, 256, 1}};
  for (const auto& size : sizes) {
    redis_load(door, true, size.bytes).run(resp_keys);
    redis_load(redis.socket(), true, size.bytes).run(resp_keys);
    redis_load ours(door, stores, size.bytes), theirs(redis.socket(), stores, size.bytes);
    place(::getpid(), 0);
    for (pid_t server : {daemon.pid(), redis.pid()})
      place(server, size.server);
    auto sides = interleave(
        options.rounds, [&] { return std::vector{ours.run(size.commands)}; },
        [&] { return std::vector{theirs.run(size.commands)}; });
    for (pid_t process : {::getpid(), daemon.pid(), redis.pid()})
      release(process);
    report(sides.judged({.name = std::string(stores ? "resp_set_" : "resp_get_") + size.name,
                         .unit = "1/s",
                         .floor = 1.0,
                         .aim = 1.5,
                         .direction = better::higher}));
  }
}

} // namespace

void resp_get(const settings& options, const reporter& report) { resp_figures(options, report, false); }
void resp_set(const settings& options, const reporter& report) { resp_figures(options, report, true); }

} // namespace terrace::bench
