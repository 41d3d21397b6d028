// The cost of a lookup of tokens that the daemon has hashed before, and the cost for other lookups of
// remembering them.
#include "bench/bare_echo.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/placement.hpp"
#include "bench/sizes.hpp"
#include "bench/workload.hpp"

#include <cstring>
#include <random>

#include <unistd.h>

namespace terrace::bench {

namespace {

constexpr size_t token_count = 131'072;
constexpr size_t chunk_count = token_count / 256;
constexpr int known_tokens_lookups_a_round = 50;
constexpr int known_after = 20; ///< lookups

std::vector<uint32_t> some_tokens() {
  std::mt19937 random(11);
  std::vector<uint32_t> tokens(token_count);
  for (auto& t : tokens)
    t = 65'536 + random() % 65'536;
  return tokens;
}

} // namespace

// Uses the default space of a client: SHA-256 over CBOR, blocks of 16. All chunks are present.
void lookup_tokens_warm(const settings& options, const reporter& report) {
  bench_daemon daemon(options);
  auto connection = connect(daemon.socket());
  auto space = must(connection.open_space(space_of(small_object)), "opening a space");
  auto memory = must(client::region::create("terrace-bench", small_object), "making a region");
  auto region = must(connection.register_region(memory), "registering a region");
  auto tokens = some_tokens();
  auto known = tokens;
  std::vector<client::run> runs(chunk_count, {.offset = 0, .bytes = small_object, .stride = 0, .count = 1});
  must(connection.store(
           {.in = space, .what = client::prefix::of_tokens(tokens), .region = &region, .runs = runs}),
       "storing");
  auto ask = [&] {
    auto found =
        must(connection.lookup({.in = space, .what = client::prefix::of_tokens(tokens)}), "looking up");
    if (found.found_chunks != chunk_count)
      give_up("a stored chunk was not found");
  };
  bare_echo echo(token_count * sizeof(uint32_t) + 128, chunk_count + 96);
  volatile bool sink = false;
  auto bare = [&] {
    echo.round_trip();
    sink = std::memcmp(tokens.data(), known.data(), token_count * sizeof(uint32_t)) == 0;
  };
  place(::getpid(), 0);
  place(daemon.pid(), 1);
  place(echo.server(), 1);
  microseconds_each(known_after, ask);
  auto sides = interleave(
      options.rounds,
      [&] { return std::vector{median(microseconds_each(known_tokens_lookups_a_round, ask))}; },
      [&] { return std::vector{median(microseconds_each(known_tokens_lookups_a_round, bare))}; });
  release(::getpid());
  report(sides.judged({.name = "lookup_tokens_warm", .unit = "us", .floor = 2.0, .aim = 1.4}));
}

// The limit is a daemon that remembers nothing.
void lookup_tokens_cold(const settings& options, const reporter& report) {
  struct cold_case {
    const char* name;
    client::hash_algorithm algorithm;
    uint32_t block_tokens;
  };
  constexpr cold_case cases[] = {
      {"lookup_tokens_cold", client::hash_algorithm::sha256, 256},
      {"lookup_tokens_cold_cbor_block16", client::hash_algorithm::sha256_cbor, 16},
  };
  bench_daemon with(options), without(options, {.connection = "group_bytes = \"16MiB\"\n"});
  auto to_with = connect(with.socket()), to_without = connect(without.socket());
  auto tokens = some_tokens();
  for (const cold_case& c : cases) {
    auto spec = space_of(small_object);
    spec.algorithm = c.algorithm;
    spec.hash_block_tokens = c.block_tokens;
    auto round = [&](client::connection& to, const client::space& in) {
      return std::vector{median(microseconds_each(known_tokens_lookups_a_round, [&] {
        ++tokens[0]; // the prompt differs from its first block on
        must(to.lookup({.in = in, .what = client::prefix::of_tokens(tokens)}), "looking up");
      }))};
    };
    auto in_with = must(to_with.open_space(spec), "opening a space");
    auto in_without = must(to_without.open_space(spec), "opening a space");
    place(::getpid(), 0);
    place(with.pid(), 1);
    place(without.pid(), 1);
    round(to_with, in_with);
    round(to_without, in_without);
    auto sides = interleave(
        options.rounds, [&] { return round(to_with, in_with); },
        [&] { return round(to_without, in_without); });
    release(::getpid());
    report(sides.judged({.name = c.name, .unit = "us", .floor = 1.03, .aim = 1.01}));
  }
}

} // namespace terrace::bench
