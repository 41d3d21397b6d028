// Latency of lookups of 128 digests, compared with an echo of the same bytes: bare, under a lease, as an
// engine makes them, and with half of the prefix on disk.
#include "bench/bare_echo.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/byte_meter.hpp"
#include "bench/placement.hpp"
#include "bench/sizes.hpp"
#include "bench/workload.hpp"

#include <optional>

#include <unistd.h>

namespace terrace::bench {

namespace {

constexpr size_t lookup_chunks = 128;
constexpr int lookups_a_round = 2000;
constexpr int warm_up = 500;

/// Where client and server run. The limit is measured in the same placement: an echo on one processor needs
/// no wake-up of another one, which is most of its time.
struct lookup_placement {
  const char* suffix;
  std::optional<int> client, server; ///< processors; none: the kernel decides
  double p50_floor, p50_aim;         ///< bounds of bare lookups; 0: no bound
  double p99_floor, p99_aim;
};
constexpr lookup_placement placements[] = {
    {"", {}, {}, 0, 0, 0, 0},
    {"_one_cpu", 0, 0, 1.6, 1.3, 0, 0},
    {"_two_cpus", 0, 1, 1.35, 1.15, 1.6, 1.3},
};

/// One way to ask for the stored chain.
using lookup_way = std::function<void(client::connection&, const client::space&)>;

/// A default daemon with a stored chain.
class stored_chain {
 public:
  explicit stored_chain(const settings& options)
      : daemon_(options), connection_(connect(daemon_.socket())),
        space_(must(connection_.open_space(space_of(small_object)), "opening a space")),
        digests_(digests_of(lookup_chunks, 1)) {
    auto memory = must(client::region::create("terrace-bench", small_object), "making a region");
    auto region = must(connection_.register_region(memory), "registering a region");
    store_chain(connection_, space_, digests_, region, small_object);
    wait_until_written(connection_);
  }

  bench_daemon& daemon() { return daemon_; }
  client::connection& connection() { return connection_; }
  const client::space& space() const { return space_; }
  std::span<const digest> digests() const { return digests_; }

  /// Looks up the whole chain.
  client::lookup_result look_up(client::connection& by, const client::space& in, bool lease,
                                const client::request_options& options = {}) const {
    auto found = must(
        by.lookup(
            {.in = in, .what = client::prefix::of_digests(digests_), .lease = lease, .options = options}),
        "looking up");
    if (found.found_chunks != lookup_chunks)
      give_up("a stored chunk was not found");
    return found;
  }

 private:
  bench_daemon daemon_;
  client::connection connection_;
  client::space space_;
  std::vector<digest> digests_;
};

/// `round_trips`: how often the client waits for an answer each time.
void measure_lookups(const settings& options, const reporter& report, const std::string& name,
                     stored_chain& stored, int round_trips, bool bounded, const lookup_way& ask) {
  std::optional<client::space> metered;
  auto bytes = bytes_each_time(
      stored.daemon().socket(), 64,
      [&](client::connection& by) {
        metered = must(by.open_space(space_of(small_object)), "opening a space");
        ask(by, *metered);
      },
      [&](client::connection& by) { ask(by, *metered); });
  // Several round trips share the bytes, because a byte costs nothing compared with a wake-up.
  auto part = static_cast<size_t>(round_trips);
  bare_echo echo(bytes.request / part, bytes.answer / part);
  auto both = [](const std::vector<double>& samples) {
    return std::vector{percentile(samples, 0.5), percentile(samples, 0.99)};
  };
  auto value = [&] {
    return both(microseconds_each(lookups_a_round, [&] { ask(stored.connection(), stored.space()); }));
  };
  auto limit = [&] {
    return both(microseconds_each(lookups_a_round, [&] {
      for (int i = 0; i < round_trips; ++i)
        echo.round_trip();
    }));
  };
  const pid_t all[] = {::getpid(), stored.daemon().pid(), echo.server()};
  for (const lookup_placement& where : placements) {
    if (where.client) {
      place(all[0], *where.client);
      place(all[1], *where.server);
      place(all[2], *where.server);
    }
    microseconds_each(warm_up, [&] { ask(stored.connection(), stored.space()); });
    auto sides = interleave(options.rounds, value, limit);
    for (pid_t process : all)
      release(process);
    report(sides.judged({.name = name + where.suffix + "_p50",
                         .unit = "us",
                         .floor = where.p50_floor,
                         .aim = where.p50_aim,
                         .bounded = bounded && where.p50_floor != 0}));
    report(sides.judged({.name = name + where.suffix + "_p99",
                         .unit = "us",
                         .floor = where.p99_floor,
                         .aim = where.p99_aim,
                         .bounded = bounded && where.p99_floor != 0},
                        1));
  }
}

} // namespace

void lookup_latency(const settings& options, const reporter& report) {
  stored_chain stored(options);
  measure_lookups(options, report, "lookup_latency", stored, 1, true,
                  [&](client::connection& by, const client::space& in) { stored.look_up(by, in, false); });
}

void lookup_leased(const settings& options, const reporter& report) {
  stored_chain stored(options);
  // The lease is released at once. A release has no answer and is sent with the next lookup.
  measure_lookups(options, report, "lookup_leased", stored, 1, false,
                  [&](client::connection& by, const client::space& in) { stored.look_up(by, in, true); });
}

void lookup_inference(const settings& options, const reporter& report) {
  stored_chain stored(options);
  uint64_t inference = 0;
  measure_lookups(options, report, "lookup_inference", stored, 2, false,
                  [&](client::connection& by, const client::space& in) {
                    client::request_options hints;
                    hints.inference = ++inference;
                    hints.session = 1 + inference % 64;
                    hints.turn = static_cast<uint32_t>(1 + inference / 64);
                    stored.look_up(by, in, true, hints);
                    must(by.end_inference({.inference = inference,
                                           .output_tokens = 200,
                                           .reason = client::finish_reason::stop,
                                           .think_time = std::chrono::seconds(20)}),
                         "ending an inference");
                  });
}

void lookup_disk(const settings& options, const reporter& report) {
  stored_chain stored(options);
  client::prompt_request second_half{
      .in = stored.space(), .what = client::prefix::of_digests(stored.digests().subspan(lookup_chunks / 2))};
  must(stored.connection().admin().move(second_half, tier_kind::disk), "moving to disk");
  for (bool lease : {false, true})
    measure_lookups(options, report, lease ? "lookup_disk_leased" : "lookup_disk", stored, 1, false,
                    [&](client::connection& by, const client::space& in) {
                      auto found = stored.look_up(by, in, lease);
                      if (found.tiers[0] != tier_kind::host ||
                          found.tiers[lookup_chunks - 1] != tier_kind::disk)
                        give_up("the chain's second half is not on disk, or its first is not in memory");
                    });
}

} // namespace terrace::bench
