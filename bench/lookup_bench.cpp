// How long a lookup takes, beside an echo of the same bytes.
#include "bench/bare_echo.hpp"
#include "bench/bare_hash.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/placement.hpp"
#include "bench/raw_space.hpp"
#include "bench/workload.hpp"

#include <random>

#include <unistd.h>

namespace terrace::bench {

namespace {

constexpr uint64_t small_object = 4096;
constexpr size_t chunks = 128;
constexpr int lookups_a_round = 4000;
constexpr int warm_up = 500;

constexpr size_t token_count = 131'072;
constexpr int token_lookups_a_round = 100;

struct hash_case {
  const char* name;
  client::hash_algorithm algorithm;
  uint32_t block_tokens;
  bool bounded;
};

// Echo and hashing apart, so that each is the bare thing; the limit of one round is the sum of their medians.
figure measure_tokens(const settings& options, const hash_case& hash, const std::string& socket_path,
                      pid_t daemon) {
  auto connection = connect(socket_path);
  auto spec = space_of(small_object);
  spec.algorithm = hash.algorithm;
  spec.hash_block_tokens = hash.block_tokens;
  auto space = must(connection.open_space(spec), "opening a space");

  // All tokens above 65,535, so that CBOR writes five bytes for each.
  std::mt19937 random(7);
  std::vector<uint32_t> tokens(token_count);
  for (auto& t : tokens)
    t = 65'536 + random() % 65'536;
  bool cbor = hash.algorithm == client::hash_algorithm::sha256_cbor;
  std::vector<uint8_t> hashed(token_count * (cbor ? 5 : 4), 1);
  size_t block_bytes = hash.block_tokens * (cbor ? 5 : 4);
  bare_echo echo(token_count * sizeof(uint32_t) + 128, 96);

  auto ask = [&] {
    ++tokens[0]; // another prompt from its first block on
    auto found =
        must(connection.lookup({.in = space, .what = client::prefix::of_tokens(tokens)}), "looking up");
    if (found.found_chunks != 0)
      give_up("a prompt that nobody stored was found");
  };
  volatile uint64_t sink = 0;
  auto bare = [&] {
    echo.round_trip();
    sink = hash.algorithm == client::hash_algorithm::xxh3_128 ? bare_xxh3_chain(hashed, block_bytes)
                                                              : bare_sha256_chain(hashed, block_bytes);
  };
  place(::getpid(), 0);
  place(daemon, 1);
  place(echo.server(), 1);
  microseconds_each(token_lookups_a_round / 10, ask);
  auto sides = interleave(
      options.rounds, [&] { return std::vector{median(microseconds_each(token_lookups_a_round, ask))}; },
      [&] { return std::vector{median(microseconds_each(token_lookups_a_round, bare))}; });
  release(::getpid());
  return {.name = hash.name,
          .unit = "us",
          .value = sides.value[0],
          .limit = sides.limit[0],
          .floor = 1.2,
          .aim = 1.1,
          .rounds = options.rounds,
          .bounded = hash.bounded};
}

} // namespace

void lookup_latency(const settings& options, const reporter& report) {
  bench_daemon daemon(options, {});
  auto connection = connect(daemon.socket());
  auto spec = space_of(small_object);
  auto space = must(connection.open_space(spec), "opening a space");
  auto memory = must(client::region::create("terrace-bench", small_object), "making a region");
  auto region = must(connection.register_region(memory), "registering a region");
  auto digests = digests_of(chunks, 1);
  store_chain(connection, space, digests, region, small_object);

  raw_space raw(daemon.socket(), spec);
  auto frame = raw.lookup_frame(digests);
  bare_echo echo(frame.size(), raw.round_trip(frame));

  auto ask = [&] {
    auto found =
        must(connection.lookup({.in = space, .what = client::prefix::of_digests(digests)}), "looking up");
    if (found.found_chunks != chunks)
      give_up("a stored chunk was not found");
  };
  auto both = [](std::vector<double> samples) {
    return std::vector{percentile(samples, 0.5), percentile(samples, 0.99)};
  };
  auto measure = [&] {
    microseconds_each(warm_up, ask);
    return interleave(
        options.rounds, [&] { return both(microseconds_each(lookups_a_round, ask)); },
        [&] { return both(microseconds_each(lookups_a_round, [&] { echo.round_trip(); })); });
  };
  figure f{.unit = "us", .rounds = options.rounds, .bounded = false};
  auto anywhere = measure();
  f.name = "lookup_latency_unplaced_p50", f.value = anywhere.value[0], f.limit = anywhere.limit[0];
  report(f);
  place(::getpid(), 0);
  place(daemon.pid(), 1);
  place(echo.server(), 1);
  auto sides = measure();
  release(::getpid());
  f.bounded = true;
  f.name = "lookup_latency_p50", f.value = sides.value[0], f.limit = sides.limit[0], f.floor = 1.35,
  f.aim = 1.15;
  report(f);
  f.name = "lookup_latency_p99", f.value = sides.value[1], f.limit = sides.limit[1], f.floor = 1.6,
  f.aim = 1.3;
  report(f);
}

void lookup_tokens(const settings& options, const reporter& report) {
  bench_daemon daemon(options, {});
  using client::hash_algorithm;
  constexpr hash_case cases[] = {
      {"lookup_tokens", hash_algorithm::sha256, 256, true},
      {"lookup_tokens_sha256_block16", hash_algorithm::sha256, 16, false},
      {"lookup_tokens_cbor", hash_algorithm::sha256_cbor, 256, false},
      {"lookup_tokens_cbor_block16", hash_algorithm::sha256_cbor, 16, false},
      {"lookup_tokens_xxh3", hash_algorithm::xxh3_128, 256, false},
  };
  for (auto& c : cases)
    report(measure_tokens(options, c, daemon.socket(), daemon.pid()));
}

} // namespace terrace::bench
