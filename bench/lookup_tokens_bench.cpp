// Latency of a lookup of tokens that the daemon has to hash, compared with an echo of the same bytes plus the
// same hashing.
#include "bench/bare_echo.hpp"
#include "bench/bare_hash.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/placement.hpp"
#include "bench/sizes.hpp"
#include "bench/workload.hpp"

#include <random>

#include <unistd.h>

namespace terrace::bench {

namespace {

constexpr size_t token_count = 131'072;
constexpr int token_lookups_a_round = 100;

struct hash_case {
  const char* name;
  client::hash_algorithm algorithm;
  uint32_t block_tokens;
  bool bounded;
};

// Echo and hashing are measured apart, so that each is bare; the limit of a round is the sum of their
// medians.
figure measure_tokens(const settings& options, const hash_case& hash, const std::string& socket_path,
                      pid_t daemon) {
  auto connection = connect(socket_path);
  auto spec = space_of(small_object);
  spec.algorithm = hash.algorithm;
  spec.hash_block_tokens = hash.block_tokens;
  auto space = must(connection.open_space(spec), "opening a space");

  // All tokens are above 65,535, so that CBOR writes five bytes for each.
  std::mt19937 random(7);
  std::vector<uint32_t> tokens(token_count);
  for (auto& t : tokens)
    t = 65'536 + random() % 65'536;
  bool cbor = hash.algorithm == client::hash_algorithm::sha256_cbor;
  std::vector<uint8_t> hashed(token_count * (cbor ? 5 : 4), 1);
  size_t block_bytes = hash.block_tokens * (cbor ? 5 : 4);
  bare_echo echo(token_count * sizeof(uint32_t) + 128, 96);

  auto ask = [&] {
    ++tokens[0]; // the prompt differs from its first block on
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
  return sides.judged({.name = hash.name, .unit = "us", .floor = 1.2, .aim = 1.1, .bounded = hash.bounded});
}

} // namespace

void lookup_tokens(const settings& options, const reporter& report) {
  bench_daemon daemon(options);
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
