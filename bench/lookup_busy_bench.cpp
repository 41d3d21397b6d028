// Lookups while daemon and client poll instead of sleeping, compared with an echo that polls, too; also the
// cases in which polling does not pay.
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/byte_meter.hpp"
#include "bench/placement.hpp"
#include "bench/polling_echo.hpp"
#include "bench/workload.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

namespace terrace::bench {

namespace {

constexpr uint64_t polled_object = 4096;
constexpr size_t polled_chunks = 128;
constexpr int polled_lookups = 4000;
constexpr int poll_us = 100;

/// A daemon with a stored chain and its client; both poll, or neither does.
struct polled_chain {
  bench_daemon daemon;
  client::connection connection;
  client::space space;
  std::vector<digest> digests = digests_of(polled_chunks, 1);

  polled_chain(const settings& options, bool polls)
      : daemon(options, {.more = polls ? "[daemon]\nbusy_poll = " + std::to_string(poll_us) + "\n" : ""}),
        connection(
            must(client::connection::connect({.path = daemon.socket(),
                                              .name = "terrace-bench",
                                              .busy_poll = std::chrono::microseconds(polls ? poll_us : 0)}),
                 "connecting")),
        space(must(connection.open_space(space_of(polled_object)), "opening a space")) {
    auto memory = must(client::region::create("terrace-bench", polled_object), "making a region");
    auto region = must(connection.register_region(memory), "registering a region");
    store_chain(connection, space, digests, region, polled_object);
    wait_until_written(connection);
  }

  void look_up(client::connection& by, const client::space& in) const {
    auto found = must(by.lookup({.in = in, .what = client::prefix::of_digests(digests)}), "looking up");
    if (found.found_chunks != polled_chunks)
      give_up("a stored chunk was not found");
  }

  std::vector<double> medians() {
    return {median(microseconds_each(polled_lookups, [&] { look_up(connection, space); }))};
  }
};

} // namespace

void lookup_busy(const settings& options, const reporter& report) {
  polled_chain polls(options, true);
  std::optional<client::space> metered;
  auto bytes = bytes_each_time(
      polls.daemon.socket(), 64,
      [&](client::connection& by) {
        metered = must(by.open_space(space_of(polled_object)), "opening a space");
        polls.look_up(by, *metered);
      },
      [&](client::connection& by) { polls.look_up(by, *metered); });
  place(::getpid(), 0);
  place(polls.daemon.pid(), 1);
  auto apart = interleave(
      options.rounds, [&] { return polls.medians(); },
      [&] {
        // Lives for this round only, because it would also poll during the daemon's.
        polling_echo echo(bytes.request, bytes.answer);
        place(echo.server(), 1);
        return std::vector{median(microseconds_each(polled_lookups, [&] { echo.round_trip(); }))};
      });
  report(apart.judged({.name = "lookup_busy", .unit = "us", .floor = 2.0, .aim = 1.4}));
  polled_chain sleeps(options, false);
  for (pid_t process : {::getpid(), polls.daemon.pid(), sleeps.daemon.pid()})
    place(process, 0);
  auto together = interleave(
      options.rounds, [&] { return polls.medians(); }, [&] { return sleeps.medians(); });
  release(::getpid());
  report(together.judged({.name = "lookup_busy_one_cpu", .unit = "us", .bounded = false}));
}

} // namespace terrace::bench
