// The rate of lookups that one worker answers.
#include "bench/bare_echo_server.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/load_generator.hpp"
#include "bench/raw_space.hpp"
#include "bench/sizes.hpp"
#include "bench/workload.hpp"

namespace terrace::bench {

namespace {

constexpr size_t throughput_chunks = 128;
constexpr int connections = 64;
constexpr double throughput_round_seconds = 1.0;

} // namespace

void lookup_throughput(const settings& options, const reporter& report) {
  bench_daemon daemon(options, {.workers = 1});
  auto spec = space_of(small_object);
  auto digests = digests_of(throughput_chunks, 2);
  store_small(daemon.socket(), spec, digests);

  std::vector<unique_fd> sockets;
  std::vector<uint8_t> frame;
  size_t answer_bytes = 0;
  for (int i = 0; i < connections; ++i) {
    raw_space raw(daemon.socket(), spec);
    auto mine = raw.lookup_frame(digests);
    if (i > 0 && mine != frame)
      give_up("one spec opened two spaces");
    frame = std::move(mine);
    answer_bytes = raw.round_trip(frame);
    sockets.push_back(raw.release());
  }
  bare_echo_server echo(connections, frame.size(), answer_bytes);
  auto sides = interleave(
      options.rounds,
      [&] {
        return std::vector{requests_per_second(sockets, frame, answer_bytes, throughput_round_seconds)};
      },
      [&] {
        return std::vector{
            requests_per_second(echo.clients(), frame, answer_bytes, throughput_round_seconds)};
      });
  report(sides.judged({.name = "lookup_throughput",
                       .unit = "requests/s",
                       .floor = 0.4,
                       .aim = 0.55,
                       .direction = better::higher}));
}

} // namespace terrace::bench
