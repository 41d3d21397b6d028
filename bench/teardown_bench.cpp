// How long other clients wait while the memory of an ended client is released.
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/sizes.hpp"
#include "bench/workload.hpp"
#include "tests/support/child_process.hpp"

#include <cstring>

namespace terrace::bench {

namespace {

constexpr size_t teardown_chunks = 128;
constexpr int teardown_lookups_a_round = 4000;
constexpr uint64_t region_bytes = 2ULL << 30; // touched, so that there is something to release

/// A client with a large region that was written to; it runs until it is killed.
test::child_process large_client(const std::string& socket) {
  return test::child_process([&socket](const test::child_voice& voice) {
    auto connection = connect(socket);
    auto memory = must(client::region::create("terrace-bench", region_bytes), "making a region");
    std::memset(memory.data(), 1, region_bytes);
    auto region = must(connection.register_region(memory), "registering a region");
    voice.say('r');
    voice.stay();
    return 0;
  });
}

} // namespace

void teardown_latency(const settings& options, const reporter& report) {
  bench_daemon daemon(options);
  auto connection = connect(daemon.socket());
  auto space = must(connection.open_space(space_of(small_object)), "opening a space");
  auto memory = must(client::region::create("terrace-bench", small_object), "making a region");
  auto region = must(connection.register_region(memory), "registering a region");
  auto digests = digests_of(teardown_chunks, 1);
  store_chain(connection, space, digests, region, small_object);
  auto look_up = [&] {
    auto samples = microseconds_each(teardown_lookups_a_round, [&] {
      must(connection.lookup({.in = space, .what = client::prefix::of_digests(digests)}), "looking up");
    });
    return std::vector{percentile(samples, 0.99), percentile(samples, 1)};
  };
  auto sides = interleave(
      options.rounds,
      [&] {
        auto ending = large_client(daemon.socket());
        if (ending.await_word() != 'r')
          give_up("the client with a large region has ended");
        ending.kill(); // now the daemon has the only mapping
        return look_up();
      },
      look_up);
  report(sides.judged({.name = "teardown_latency_p99", .unit = "us", .bounded = false}));
  report(sides.judged({.name = "teardown_latency_max", .unit = "us", .bounded = false}, 1));
}

} // namespace terrace::bench
