// The time of a turn in a long conversation, and the memory that a session takes in the daemon.
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/placement.hpp"
#include "bench/processor_time.hpp"
#include "bench/sizes.hpp"
#include "bench/workload.hpp"
#include "group/session_turn.hpp"
#include "index/prefix_hasher.hpp"
#include "tests/support/scrape.hpp"

#include <chrono>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>

#include <unistd.h>

namespace terrace::bench {

namespace {

constexpr size_t new_tokens = 512;
constexpr int turns_a_round = 2000;

client::space_spec session_space() {
  auto spec = space_of(small_object);
  spec.algorithm = client::hash_algorithm::sha256;
  spec.hash_block_tokens = 256;
  return spec;
}

/// Measures a turn of 512 new tokens after `history`, all of it stored, against a lookup of 128 digests.
figure measure_turn(const settings& options, const std::string& name, size_t history) {
  bench_daemon daemon(options);
  auto connection = connect(daemon.socket());
  auto space = must(connection.open_space(session_space()), "opening a space");
  auto memory = must(client::region::create("terrace-bench", small_object), "making a region");
  auto region = must(connection.register_region(memory), "registering a region");
  std::vector<uint32_t> prompt(history + new_tokens);
  std::iota(prompt.begin(), prompt.end(), 1);
  auto known =
      must(connection.lookup({.in = space, .what = client::prefix::of_tokens(prompt), .digests = true}),
           "hashing");
  std::vector<digest> chain = known.digests;
  store_chain(connection, space, chain, region, small_object);
  auto session = must(connection.open_session(space), "opening a session");
  must(session.lookup(std::span(prompt).first(history), 0), "the first turn");
  std::vector<digest> few(chain.begin(), chain.begin() + 128);

  auto turn = [&] {
    auto found = must(session.lookup(prompt, history), "a turn");
    if (found.found_chunks != chain.size())
      give_up("a stored chunk was not found");
  };
  auto lookup = [&] {
    auto found =
        must(connection.lookup({.in = space, .what = client::prefix::of_digests(few)}), "looking up");
    if (found.found_chunks != few.size())
      give_up("a stored chunk was not found");
  };
  place(::getpid(), 0);
  place(daemon.pid(), 1);
  microseconds_each(turns_a_round / 10, turn);
  auto sides = interleave(
      options.rounds, [&] { return std::vector{median(microseconds_each(turns_a_round, turn))}; },
      [&] { return std::vector{median(microseconds_each(turns_a_round, lookup))}; });
  release(::getpid());
  return sides.judged({.name = name, .unit = "us", .floor = 1.5, .aim = 1.1, .bounded = false});
}

std::vector<uint32_t> tokens_up_to(size_t count) {
  std::vector<uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 1);
  return tokens;
}

/// Counts the bytes that the daemon receives for a turn of 512 new tokens after 131,072, against those tokens
/// alone.
figure measure_turn_bytes(const settings& options) {
  constexpr int turns = 100;
  uint16_t port = test::free_port();
  bench_daemon daemon(options, {.metrics_port = port});
  auto connection = connect(daemon.socket());
  auto space = must(connection.open_space(session_space()), "opening a space");
  auto prompt = tokens_up_to(131'072 + turns * new_tokens);
  auto session = must(connection.open_session(space), "opening a session");
  auto up_to = [&](int turn) {
    return std::span(prompt).first(131'072 + static_cast<size_t>(turn) * new_tokens);
  };
  must(session.lookup(up_to(0), 0), "the first turn");
  auto received = [port] {
    return test::number_behind(test::scrape(port), R"(terrace_received_bytes_total{group="default"})");
  };
  double before = received();
  for (int turn = 1; turn <= turns; ++turn)
    must(session.lookup(up_to(turn), session.tokens()), "a turn");
  return {.name = "session_turn_bytes",
          .unit = "bytes",
          .value = (received() - before) / turns,
          .limit = new_tokens * sizeof(uint32_t),
          .floor = 2,
          .aim = 1.5,
          .rounds = 1};
}

/// Measures, in this process, the daemon's hashing for such a turn against hashing its new tokens alone. The
/// base is inside a chunk, whose beginning is hashed again.
figure measure_turn_hashing(const settings& options) {
  constexpr size_t history = 131'072 + 100;
  constexpr int times = 2000;
  space_spec spec{.chunk_tokens = 256};
  auto hasher = make_token_hasher(spec);
  auto prompt = tokens_up_to(history + new_tokens);
  auto turn_of = [&](const session_state_ptr& from, std::span<const uint8_t> base, size_t begin, size_t end) {
    auto turn = must(
        session_turn::begin(
            spec, *hasher, from, nullptr,
            {.base_tokens = begin, .base = base, .tokens = std::span(prompt).subspan(begin, end - begin)}),
        "a turn");
    auto resolver = must(prefix_resolver::make(spec, *hasher, turn.input()), "hashing");
    while (!must(resolver.step(hash_step_work), "hashing")) {
    }
    (void) turn.finish(resolver.take(), *hasher);
    return turn.after();
  };
  auto before = turn_of(std::make_shared<const session_state>(), {}, 0, history);
  auto tokens = std::span(prompt).last(new_tokens);
  auto sides = interleave(
      options.rounds,
      [&] {
        return std::vector{median(microseconds_each(
            times, [&] { turn_of(before, before->last().bytes, history, prompt.size()); }))};
      },
      [&] {
        return std::vector{median(microseconds_each(times, [&] {
          if (hash_chunks(*hasher, {spec.chunk_tokens, spec.hash_block_tokens}, {}, tokens, {}).size() != 2)
            give_up("512 tokens are two chunks");
        }))};
      });
  return sides.judged({.name = "session_turn_hashing", .unit = "us", .floor = 2, .aim = 1.5});
}

/// Excludes the arena, which is being touched meanwhile.
double private_bytes(pid_t pid) {
  std::ifstream pages("/proc/" + std::to_string(pid) + "/statm");
  uint64_t all = 0, resident = 0, shared = 0;
  pages >> all >> resident >> shared;
  return static_cast<double>(resident - shared) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

} // namespace

void session_turn(const settings& options, const reporter& report) {
  report(measure_turn(options, "session_turn", 131'072));
  report(measure_turn(options, "session_turn_1m", 1'048'576));
  report(measure_turn_bytes(options));
  report(measure_turn_hashing(options));
}

/// Measures forks of a session of 131,072 tokens and half a chunk, with one append each, against as many
/// sessions that are opened and given half a chunk.
void fork_sessions(const settings& options, const reporter& report) {
  constexpr size_t forks = 1000, history = 131'072, tail = 128, appended = 16;
  bench_daemon daemon(options);
  auto connection = connect(daemon.socket());
  auto space = must(connection.open_space(session_space()), "opening a space");
  auto prompt = tokens_up_to(history + tail + appended);
  auto original = must(connection.open_session(space), "opening a session");
  must(original.lookup(std::span(prompt).first(history + tail), 0), "the first turn");
  std::vector<client::session> kept;
  auto fork_each = [&] {
    return seconds_of([&] {
      for (size_t i = 0; i < forks; ++i) {
        auto& one = kept.emplace_back(must(original.fork(history + tail), "forking"));
        must(one.lookup(prompt, history + tail), "an append");
      }
    });
  };
  auto open_each = [&] {
    return seconds_of([&] {
      for (size_t i = 0; i < forks; ++i) {
        auto& one = kept.emplace_back(must(connection.open_session(space), "opening a session"));
        must(one.lookup(std::span(prompt).first(tail + appended), 0), "a first turn");
      }
    });
  };
  auto before = private_bytes(daemon.pid());
  fork_each();
  double bytes = (private_bytes(daemon.pid()) - before) / forks;
  kept.clear();
  auto each = [&kept](auto& work) {
    double seconds = work();
    kept.clear();
    return std::vector{seconds / forks * 1e6};
  };
  auto sides = interleave(
      options.rounds, [&] { return each(fork_each); }, [&] { return each(open_each); });
  report(sides.judged({.name = "fork", .unit = "us", .floor = 1.5, .aim = 1.3, .bounded = false}));
  report({.name = "fork_bytes",
          .unit = "bytes",
          .value = bytes,
          .limit = tail * sizeof(uint32_t),
          .rounds = 1,
          .absolute = true,
          .bounded = false});
}

void sessions_many(const settings& options, const reporter& report) {
  constexpr size_t clients = 4, sessions = 100'000, tokens = 384; // one and a half chunks each
  bench_daemon daemon(options);
  std::vector<uint32_t> prompt(tokens, 7);
  std::vector<client::connection> connections;
  std::vector<client::session> opened;
  double before = 0;
  for (size_t i = 0; i < clients; ++i) {
    auto& by = connections.emplace_back(connect(daemon.socket()));
    auto space = must(by.open_space(session_space()), "opening a space");
    if (i == 0)
      before = private_bytes(daemon.pid());
    for (size_t n = 0; n < sessions / clients; ++n) {
      auto& one = opened.emplace_back(must(by.open_session(space), "opening a session"));
      prompt[0] = static_cast<uint32_t>(opened.size());
      must(one.lookup(prompt, 0), "a turn");
    }
  }
  if (must(connections[0].admin().sessions(), "listing").count != sessions)
    give_up("some sessions have ended");
  report({.name = "sessions_many",
          .unit = "bytes",
          .value = (private_bytes(daemon.pid()) - before) / sessions,
          .limit = tokens % 256 * sizeof(uint32_t) + sizeof(digest), // the minimum that it must know
          .floor = 1100,
          .aim = 1024,
          .rounds = 1,
          .absolute = true});
  double used = cpu_seconds_of(daemon.pid());
  double seconds = seconds_of([] { std::this_thread::sleep_for(std::chrono::seconds(5)); });
  report({.name = "sessions_idle_cpu",
          .unit = "% of a core",
          .value = (cpu_seconds_of(daemon.pid()) - used) / seconds * 100,
          .limit = 0,
          .floor = 0.2,
          .aim = 0.0005, // small enough to round to nothing
          .rounds = 1,
          .absolute = true});
}

} // namespace terrace::bench
