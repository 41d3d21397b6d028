// Lookups, loads and stores by 1, 2, 4 and 8 workers, each with its own client, as far as there are
// processors.
#include "bench/bare_copy.hpp"
#include "bench/bare_echo_server.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/crowd.hpp"
#include "bench/load_generator.hpp"
#include "bench/raw_space.hpp"
#include "bench/shared_memory.hpp"
#include "bench/sizes.hpp"
#include "bench/workload.hpp"

#include <deque>
#include <iostream>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include <unistd.h>

namespace terrace::bench {

namespace {

constexpr size_t scaling_chunks = 128;
constexpr size_t connections_a_worker = 32;
constexpr double scaling_seconds = 1.0;
constexpr size_t scaling_depth = 4;     ///< requests in flight of a client that loads or stores
constexpr size_t scaling_objects = 256; ///< objects of 1 MiB that all clients together store in a round

/// Returns the requests per second of several generators, each on a thread with its own part of the sockets.
double rate_together(const std::vector<std::vector<unique_fd>>& parts, const std::vector<uint8_t>& frame,
                     size_t answer_bytes) {
  std::vector<double> rates(parts.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < parts.size(); ++i)
    threads.emplace_back(
        [&, i] { rates[i] = requests_per_second(parts[i], frame, answer_bytes, scaling_seconds); });
  for (std::thread& each : threads)
    each.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

void scale_lookups(const settings& options, const reporter& report, uint32_t workers) {
  bench_daemon daemon(options, {.workers = workers});
  auto spec = space_of(4096);
  auto digests = digests_of(scaling_chunks, 2);
  store_small(daemon.socket(), spec, digests);
  std::vector<uint8_t> frame;
  size_t answer_bytes = 0;
  std::vector<std::vector<unique_fd>> ours(workers), theirs(workers);
  for (size_t i = 0; i < workers * connections_a_worker; ++i) {
    raw_space raw(daemon.socket(), spec);
    frame = raw.lookup_frame(digests);
    answer_bytes = raw.round_trip(frame);
    ours[i % workers].push_back(raw.release());
  }
  std::vector<std::unique_ptr<bare_echo_server>> servers; // the servers fork, so they come before any thread
  for (uint32_t i = 0; i < workers; ++i) {
    servers.push_back(std::make_unique<bare_echo_server>(connections_a_worker, frame.size(), answer_bytes));
    for (const unique_fd& each : servers.back()->clients())
      theirs[i].emplace_back(::dup(each.get()));
  }
  auto sides = interleave(
      options.rounds, [&] { return std::vector{rate_together(ours, frame, answer_bytes)}; },
      [&] { return std::vector{rate_together(theirs, frame, answer_bytes)}; });
  report(sides.judged({.name = "scaling_lookups_" + std::to_string(workers),
                       .unit = "requests/s",
                       .direction = better::higher,
                       .bounded = false}));
}

/// One client's share of the objects, one chain each, with several requests in flight.
class scaling_client {
 public:
  scaling_client(const std::string& socket, size_t objects, uint64_t seed)
      : client_(socket, mib, 1), objects_(objects), seed_(seed << 32) {}

  void store() {
    names_ = digests_of(objects_, ++seed_);
    pipelined([this](const digest& each) { return client_.begin_store({each}); });
  }
  void load() {
    pipelined([this](const digest& each) { return client_.begin_load({each}); });
  }

 private:
  template <class Begin>
  void pipelined(Begin&& begin) {
    std::deque<decltype(begin(digest()))> under_way;
    for (const digest& each : names_) {
      if (under_way.size() == scaling_depth) {
        client_.finish(under_way.front());
        under_way.pop_front();
      }
      under_way.push_back(begin(each));
    }
    for (auto& ticket : under_way)
      client_.finish(ticket);
  }

  crowd_client client_;
  size_t objects_;
  uint64_t seed_;
  std::vector<digest> names_;
};

void scale_copies(const settings& options, const reporter& report, uint32_t workers) {
  bench_daemon daemon(options, {.workers = workers});
  auto observer = connect(daemon.socket());
  std::vector<std::unique_ptr<scaling_client>> clients;
  for (uint32_t i = 0; i < workers; ++i)
    clients.push_back(std::make_unique<scaling_client>(daemon.socket(), scaling_objects / workers, i + 1));
  auto rate = [&](void (scaling_client::*work)()) {
    double seconds = seconds_of([&] {
      std::vector<std::thread> threads;
      for (auto& each : clients)
        threads.emplace_back([&each, work] { ((*each).*work)(); });
      for (std::thread& each : threads)
        each.join();
    });
    return static_cast<double>(scaling_objects * mib) / 1e9 / seconds;
  };
  auto round = [&] {
    double stored = rate(&scaling_client::store);
    wait_until_written(observer);
    return std::vector{stored, rate(&scaling_client::load)};
  };
  shared_memory many(scaling_objects * mib), few(workers * mib); // one arena, and a region for each client
  auto copy = [&](std::span<uint8_t> to, std::span<const uint8_t> from) {
    double seconds = seconds_to_copy(
        {.total_bytes = scaling_objects * mib, .piece_bytes = mib, .threads = default_copiers()}, to, from);
    return static_cast<double>(scaling_objects * mib) / 1e9 / seconds;
  };
  for (int i = 0; i < 4; ++i)
    round(); // from now on stores evict
  auto sides = interleave(options.rounds, round, [&] {
    return std::vector{copy(many.bytes(), few.bytes()), copy(few.bytes(), many.bytes())};
  });
  const char* names[] = {"scaling_stores_", "scaling_loads_"};
  for (size_t i = 0; i < 2; ++i)
    report(sides.judged({.name = names[i] + std::to_string(workers),
                         .unit = "GB/s",
                         .direction = better::higher,
                         .bounded = false},
                        i));
}

} // namespace

void scaling(const settings& options, const reporter& report) {
  for (uint32_t workers : {1, 2, 4, 8}) {
    uint32_t wanted = 2 * workers; // a processor for each worker and each client
    if (std::thread::hardware_concurrency() < wanted) {
      std::cerr << "scaling: without " << workers << " workers, which need " << wanted << " processors"
                << std::endl;
      continue;
    }
    scale_lookups(options, report, workers);
    scale_copies(options, report, workers);
  }
}

} // namespace terrace::bench
