// How long a client waits when another client of the same worker makes the most expensive legal requests.
#include "bench/bare_echo.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/processor_time.hpp"
#include "bench/sizes.hpp"
#include "bench/workload.hpp"
#include "tests/support/child_process.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>

namespace terrace::bench {

namespace {

constexpr size_t many_objects = 8'192;
constexpr double longest_turn_round_seconds = 2.0;
constexpr size_t prompt_tokens = 2'097'152; ///< as many tokens as a prompt may have

/// Chunks so small that a prompt may have 65,536 of them.
client::space_spec small_chunks() {
  auto spec = space_of(small_object);
  spec.chunk_tokens = 16;
  return spec;
}

client::deadline soon() { return client::within(std::chrono::milliseconds(2'000)); }

/// A hostile client in a process of its own: it repeats one kind of request until it is killed, and ignores
/// errors.
using hostile = void (*)(const std::string& socket);

/// Every token is a block, with a LoRA name and an item.
void hash_blocks(const std::string& socket) {
  auto daemon = connect(socket);
  auto spec = space_of(small_object);
  spec.chunk_tokens = 32;
  spec.hash_block_tokens = 1;
  auto space = must(daemon.open_space(spec), "opening a space");
  std::vector<uint32_t> tokens(prompt_tokens);
  std::string name(256, 'l');
  std::vector<client::item> items{{.identifier = name, .first_token = 0, .tokens = prompt_tokens}};
  auto prompt = client::prefix::of_tokens(tokens);
  prompt.lora = name;
  prompt.items = items;
  for (;;) {
    ++tokens[0];
    (void) daemon.lookup({.in = space, .what = prompt}, soon());
  }
}

/// Sends another prompt of 16,384 tokens each time, eight at a time.
void hash_prompts(const std::string& socket) {
  auto daemon = connect(socket);
  auto space = must(daemon.open_space(small_chunks()), "opening a space");
  std::vector<uint32_t> tokens(16'384);
  for (;;) {
    std::vector<client::ticket<client::lookup_result>> tickets;
    for (int i = 0; i < 8; ++i) {
      ++tokens[0];
      if (auto ticket =
              daemon.async().lookup({.in = space, .what = client::prefix::of_tokens(tokens)}, soon()))
        tickets.push_back(std::move(*ticket));
    }
    for (auto& each : tickets)
      (void) each.wait(soon());
  }
}

/// Sends sixteen long tags on 65,536 chunks.
void hash_tags(const std::string& socket) {
  auto daemon = connect(socket);
  auto space = must(daemon.open_space(small_chunks()), "opening a space");
  auto digests = digests_of(65'536, 11);
  std::vector<std::string> texts;
  for (char c = 'a'; c < 'a' + 16; ++c)
    texts.push_back(std::string(256, c));
  std::vector<std::string_view> tags(texts.begin(), texts.end());
  auto prompt = client::prefix::of_digests(digests);
  prompt.tags = tags;
  for (;;)
    (void) daemon.lookup({.in = space, .what = prompt}, soon());
}

/// Looks up a million objects that nobody stored, each time for another inference.
void many_ranks(const std::string& socket) {
  auto daemon = connect(socket);
  auto spec = small_chunks();
  spec.world_size = 64;
  auto space = must(daemon.open_space(spec), "opening a space");
  for (uint64_t inference = 1;; ++inference) {
    auto digests = digests_of(16'384, inference);
    client::lookup_request request{.in = space, .what = client::prefix::of_digests(digests), .lease = true};
    request.options.inference = inference;
    (void) daemon.lookup(request, soon());
  }
}

/// Stores 8,192 objects at once, leases them and reads their places; then stores others in their place.
void many_objects_stored(const std::string& socket) {
  auto daemon = connect(socket);
  auto space = must(daemon.open_space(space_of(small_object)), "opening a space");
  auto memory = must(client::region::create("terrace-bench", small_object), "making a region");
  auto region = must(daemon.register_region(memory), "registering a region");
  for (uint64_t seed = 100;; ++seed) {
    auto digests = digests_of(many_objects, seed);
    store_chain(daemon, space, digests, region, small_object);
    auto found =
        daemon.lookup({.in = space, .what = client::prefix::of_digests(digests), .lease = true}, soon());
    if (found && found->found_chunks != 0)
      (void) daemon.read_lease(found->held.id(), {}, soon());
  }
}

/// Leases 57,344 objects, reads their places and releases them, again and again.
void leases(const std::string& socket) {
  auto daemon = connect(socket);
  auto space = must(daemon.open_space(small_chunks()), "opening a space");
  auto memory = must(client::region::create("terrace-bench", small_object), "making a region");
  auto region = must(daemon.register_region(memory), "registering a region");
  auto digests = digests_of(57'344, 19);
  store_chain(daemon, space, digests, region, small_object);
  for (;;) {
    auto found =
        daemon.lookup({.in = space, .what = client::prefix::of_digests(digests), .lease = true}, soon());
    if (found && found->found_chunks != 0)
      (void) daemon.read_lease(found->held.id(), {}, soon());
  }
}

/// Reserves as many objects as a reservation may have, and aborts at once.
void reservations(const std::string& socket) {
  auto daemon = connect(socket);
  auto space = must(daemon.open_space(small_chunks()), "opening a space");
  auto digests = digests_of(16'384, 13);
  for (;;) {
    client::reserve_request request;
    request.in = space;
    request.what = client::prefix::of_digests(digests);
    (void) daemon.reserve(request, soon());
  }
}

/// Clears everything again and again.
void clears(const std::string& socket) {
  auto daemon = connect(socket);
  auto space = must(daemon.open_space(space_of(small_object)), "opening a space");
  auto memory = must(client::region::create("terrace-bench", small_object), "making a region");
  auto region = must(daemon.register_region(memory), "registering a region");
  auto digests = digests_of(many_objects, 17);
  for (;;) {
    store_chain(daemon, space, digests, region, small_object);
    (void) daemon.admin().clear(&space, soon());
  }
}

/// Sends half a million runs of one piece each.
void tiny_runs(const std::string& socket) {
  constexpr uint64_t piece = 16, large_object = 1 << 20, objects = 7;
  auto daemon = connect(socket);
  auto space = must(daemon.open_space(space_of(large_object)), "opening a space");
  auto memory = must(client::region::create("terrace-bench", 2 * objects * large_object), "making a region");
  auto region = must(daemon.register_region(memory), "registering a region");
  std::vector<client::run> runs;
  for (uint64_t i = 0; i < objects * large_object / piece; ++i)
    runs.push_back({.offset = 2 * i * piece, .bytes = piece});
  std::vector<uint32_t> per_object(objects, large_object / piece);
  for (uint64_t seed = 1000;; ++seed) {
    auto digests = digests_of(objects, seed);
    client::store_request request;
    request.in = space;
    request.what = client::prefix::of_digests(digests);
    request.region = &region;
    request.runs = runs;
    request.runs_per_object = per_object;
    (void) daemon.store(request, soon());
  }
}

/// Sends a million pieces of a byte, in one run.
void tiny_pieces(const std::string& socket) {
  constexpr uint64_t large_object = 1 << 20;
  auto daemon = connect(socket);
  auto space = must(daemon.open_space(space_of(large_object)), "opening a space");
  auto memory = must(client::region::create("terrace-bench", 2 * large_object), "making a region");
  auto region = must(daemon.register_region(memory), "registering a region");
  client::run run{.offset = 0, .bytes = 1, .stride = 2, .count = large_object};
  for (uint64_t seed = 5000;; ++seed) {
    auto digests = digests_of(1, seed);
    client::store_request request;
    request.in = space;
    request.what = client::prefix::of_digests(digests);
    request.region = &region;
    request.runs = {&run, 1};
    (void) daemon.store(request, soon());
  }
}

struct attack {
  const char* name;
  hostile run;
  size_t clients = 1;
};
constexpr attack attacks[] = {{"longest_turn_hash_blocks", hash_blocks},
                              {"longest_turn_hash_blocks_4", hash_blocks, 4},
                              {"longest_turn_hash_blocks_16", hash_blocks, 16},
                              {"longest_turn_hash_prompts_4", hash_prompts, 4},
                              {"longest_turn_hash_prompts_16", hash_prompts, 16},
                              {"longest_turn_hash_tags", hash_tags},
                              {"longest_turn_ranks", many_ranks},
                              {"longest_turn_objects", many_objects_stored},
                              {"longest_turn_leases", leases},
                              {"longest_turn_reserve", reservations},
                              {"longest_turn_clear", clears},
                              {"longest_turn_runs", tiny_runs},
                              {"longest_turn_pieces", tiny_pieces}};

/// Returns the p99 of successive round trips, in us.
double p99_of(const std::function<void()>& round_trip) {
  std::vector<double> samples;
  for (double end = seconds_now() + longest_turn_round_seconds; seconds_now() < end;)
    samples.push_back(seconds_of(round_trip) * 1e6);
  return percentile(std::move(samples), 0.99);
}

/// Returns how long a bare echo takes beside `busy` threads that always have something to do. This shows what
/// the kernel's slices add when there are not enough processors.
double contended_echo_p99(size_t busy) {
  bare_echo echo(128 * digest::max_size + 128, 256);
  std::vector<test::child_process> spinning;
  for (size_t i = 0; i < busy; ++i)
    spinning.emplace_back([] {
      for (std::atomic<uint64_t> turns{0};;)
        turns.fetch_add(1, std::memory_order_relaxed);
    });
  return p99_of([&] { echo.round_trip(); });
}

} // namespace

void longest_turn(const settings& options, const reporter& report) {
  for (const attack& each : attacks) {
    bench_daemon daemon(options, {.workers = 1});
    auto other = connect(daemon.socket());
    auto space = must(other.open_space(space_of(small_object)), "opening a space");
    auto digests = digests_of(128, 5);
    auto p99 = [&] {
      return p99_of([&] {
        must(other.lookup({.in = space, .what = client::prefix::of_digests(digests)}), "looking up");
      });
    };
    auto beside_hostile = [&] {
      std::vector<test::child_process> hostile;
      for (size_t i = 0; i < each.clients; ++i)
        hostile.emplace_back([&] { each.run(daemon.socket()); });
      auto runnable = [&] {
        double seconds = runnable_seconds_of(daemon.pid());
        for (const auto& client : hostile)
          seconds += runnable_seconds_of(client.pid());
        return seconds;
      };
      double before = runnable(), began = seconds_now();
      double took = p99();
      double busy = (runnable() - before) / (seconds_now() - began);
      hostile.clear();
      return std::vector{took, contended_echo_p99(static_cast<size_t>(std::max(1.0, std::round(busy))))};
    };
    auto sides = interleave(options.rounds, beside_hostile, [&] { return std::vector{p99()}; });
    report(sides.judged({.name = each.name, .unit = "us", .floor = 5'000, .aim = 1'000, .absolute = true}));
    report(of_rounds({.name = std::string(each.name) + "_contended", .unit = "us", .bounded = false},
                     sides.values[0], sides.values[1]));
  }
}

} // namespace terrace::bench
