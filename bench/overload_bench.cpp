// How much each client gets while one asks for far more than the others, how much a trust group gets beside a
// greedy one, how long a lookup takes while others store, and how many useful bytes are left when clients
// want four times the memory.
#include "bench/bare_disk.hpp"
#include "bench/bare_echo.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/crowd.hpp"
#include "bench/raw_space.hpp"
#include "bench/shared_memory.hpp"
#include "bench/sizes.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <random>

namespace terrace::bench {

namespace {

constexpr double overload_round_seconds = 1.0;

// ---- clients of one group ----

constexpr size_t crowd_size = 8;

/// Loads the same chain all the time, with `depth` requests in flight.
class puller {
 public:
  puller(const std::string& socket_path, uint64_t seed, size_t chunks, size_t depth)
      : client_(socket_path, mib, chunks), chain_(digests_of(chunks, seed)), depth_(depth) {
    client_.store(chain_);
  }

  void pull() {
    while (under_way_.size() < depth_)
      under_way_.push_back(client_.begin_load(chain_));
    bytes_ += client_.finish(under_way_.front());
    under_way_.pop_front();
  }

  /// Returns the bytes delivered since the last call; waits for what is in flight.
  uint64_t take_bytes() {
    uint64_t taken = std::exchange(bytes_, 0);
    for (auto& each : under_way_)
      client_.finish(each);
    under_way_.clear();
    return taken;
  }

 private:
  crowd_client client_;
  std::vector<digest> chain_;
  size_t depth_;
  std::deque<client::ticket<client::load_result>> under_way_;
  uint64_t bytes_ = 0;
};

/// Returns the share of the client that got least, relative to an equal share, from 0 to 1.
double least_share(std::vector<puller>& clients) {
  std::vector<std::function<void()>> work;
  for (auto& each : clients)
    work.push_back([&each] { each.pull(); });
  work_together(work, overload_round_seconds);
  std::vector<double> bytes;
  for (auto& each : clients)
    bytes.push_back(static_cast<double>(each.take_bytes()));
  double all = std::accumulate(bytes.begin(), bytes.end(), 0.0);
  return *std::min_element(bytes.begin(), bytes.end()) * static_cast<double>(bytes.size()) / all;
}

void measure_clients(const settings& options, const reporter& report) {
  bench_daemon daemon(options);
  std::vector<puller> alike, greedy;
  for (size_t i = 0; i < crowd_size; ++i) {
    alike.emplace_back(daemon.socket(), i, 1, 2);
    if (i != 0)
      greedy.emplace_back(daemon.socket(), i, 1, 2);
  }
  greedy.emplace_back(daemon.socket(), 100, 8, 32); // 8 MiB per request, 32 requests in flight
  auto sides = interleave(
      options.rounds, [&] { return std::vector{least_share(greedy)}; },
      [&] { return std::vector{least_share(alike)}; });
  report(sides.judged({.name = "fairness_clients",
                       .unit = "share",
                       .floor = 0.25,
                       .aim = 0.5,
                       .direction = better::higher,
                       .absolute = true}));
}

// ---- two trust groups ----

/// Asks for as much as a client can: loads in flight, and stores that evict.
class greedy_client {
 public:
  greedy_client(const std::string& socket_path, uint64_t seed)
      : client_(socket_path, mib, chunks), chain_(digests_of(chunks, seed)), seed_(seed * 1000) {
    client_.store(chain_);
  }

  void work() {
    std::deque<client::ticket<client::load_result>> loads;
    for (size_t i = 0; i < depth; ++i)
      loads.push_back(client_.begin_load(chain_));
    client_.store(digests_of(chunks, ++seed_));
    for (auto& each : loads)
      client_.finish(each);
  }

 private:
  static constexpr size_t chunks = 8, depth = 16;
  crowd_client client_;
  std::vector<digest> chain_;
  uint64_t seed_;
};

/// Returns p50 and p99 of lookups, and then of loads, in microseconds, while the others work.
std::vector<double> lookups_and_loads(crowd_client& by, const std::vector<digest>& chain,
                                      std::vector<std::unique_ptr<greedy_client>>& others) {
  std::vector<digest> one{chain.front()};
  std::vector<double> lookups, loads;
  std::vector<std::function<void()>> work;
  for (auto& each : others)
    work.push_back([&each] { each->work(); });
  work.push_back([&] {
    lookups.push_back(1e6 * seconds_of([&] {
                        if (by.look_up(chain).found_chunks != chain.size())
                          give_up("a stored chunk was not found");
                      }));
    loads.push_back(1e6 * seconds_of([&] {
                      auto under_way = by.begin_load(one);
                      by.finish(under_way);
                    }));
  });
  work_together(work, overload_round_seconds);
  return {percentile(lookups, 0.5), percentile(lookups, 0.99), percentile(loads, 0.5),
          percentile(loads, 0.99)};
}

void measure_groups(const settings& options, const reporter& report) {
  bench_daemon daemon(options, {.second_group = true});
  std::vector<std::unique_ptr<greedy_client>> greedy, nobody;
  for (uint64_t i = 0; i < 4; ++i)
    greedy.push_back(std::make_unique<greedy_client>(daemon.socket(), i + 1));
  crowd_client by(daemon.second_socket(), mib, 64);
  auto chain = digests_of(64, 500);
  by.store(chain);
  auto sides = interleave(
      options.rounds, [&] { return lookups_and_loads(by, chain, greedy); },
      [&] { return lookups_and_loads(by, chain, nobody); });
  const char* names[] = {"fairness_groups_lookup_p50", "fairness_groups_lookup_p99",
                         "fairness_groups_load_p50", "fairness_groups_load_p99"};
  for (size_t i = 0; i < 4; ++i)
    report(sides.judged({.name = names[i], .unit = "us", .floor = 4, .aim = 2, .bounded = i % 2 == 1},
                        i)); // the target applies to p99
}

// ---- lookups beside stores ----

constexpr size_t storing_clients = 4;

/// Stores new chains, two at a time.
class storing_client {
 public:
  storing_client(const std::string& socket_path, uint64_t seed)
      : client_(socket_path, mib, chunks), seed_(seed * 100'000) {}

  void work() {
    while (under_way_.size() < 2) // keeps both ends busy
      under_way_.push_back(client_.begin_store(digests_of(chunks, ++seed_)));
    client_.finish(under_way_.front());
    under_way_.pop_front();
  }

 private:
  static constexpr size_t chunks = 8;
  crowd_client client_;
  std::deque<client::ticket<client::store_result>> under_way_;
  uint64_t seed_;
};

/// Returns p50 and p99 of `ask` in microseconds while the others work.
std::vector<double> beside(const std::function<void()>& ask, std::vector<std::function<void()>> others) {
  std::vector<double> samples;
  others.push_back([&] { samples.push_back(1e6 * seconds_of(ask)); });
  work_together(others, overload_round_seconds);
  return {percentile(samples, 0.5), percentile(samples, 0.99)};
}

// ---- more than there is ----

/// A client with several conversations, each a chain: it looks one up under a lease, loads what is there, and
/// stores the rest.
class conversing_client {
 public:
  static constexpr uint64_t object_bytes = 256 << 10;
  static constexpr size_t chunks = 16;

  conversing_client(const std::string& socket_path, uint64_t seed, size_t conversations)
      : client_(socket_path, object_bytes, chunks), random_(seed) {
    for (size_t i = 0; i < conversations; ++i)
      chains_.push_back(digests_of(chunks, seed * 1000 + i));
  }

  void store_all() {
    for (auto& each : chains_)
      client_.store(each);
  }

  void work() {
    auto& chain = chains_[random_() % chains_.size()];
    auto found = client_.look_up(chain, true);
    if (found.found_chunks != 0) {
      auto under_way = client_.begin_load(found);
      bytes_ += client_.finish(under_way);
      found.held.release();
    }
    if (found.found_chunks != chain.size())
      client_.store(chain, found.found_chunks);
  }

  uint64_t take_bytes() { return std::exchange(bytes_, 0); }

 private:
  crowd_client client_;
  std::mt19937_64 random_;
  std::vector<std::vector<digest>> chains_;
  uint64_t bytes_ = 0;
};

/// A daemon whose clients together want `times` its host memory.
class conversing_crowd {
 public:
  static constexpr uint64_t host_bytes = 128 * mib;

  conversing_crowd(const settings& options, double times, bool disk)
      : daemon_(options, {.host_bytes = host_bytes, .disk = disk}) {
    // Bytes with headers.
    constexpr uint64_t chain_bytes = conversing_client::chunks * (conversing_client::object_bytes + 4096);
    auto conversations =
        static_cast<size_t>(times * static_cast<double>(host_bytes) / chain_bytes / crowd_size);
    for (size_t i = 0; i < crowd_size; ++i) {
      clients_.push_back(std::make_unique<conversing_client>(daemon_.socket(), i + 1, conversations));
      clients_.back()->store_all();
    }
    (void) gigabytes(); // runs until the policy knows the conversations
  }

  /// Returns GB delivered per second.
  double gigabytes() {
    std::vector<std::function<void()>> work;
    for (auto& each : clients_)
      work.push_back([&each] { each->work(); });
    double seconds = seconds_of([&] { work_together(work, overload_round_seconds); });
    uint64_t bytes = 0;
    for (auto& each : clients_)
      bytes += each->take_bytes();
    return static_cast<double>(bytes) / 1e9 / seconds;
  }

 private:
  bench_daemon daemon_;
  std::vector<std::unique_ptr<conversing_client>> clients_;
};

void measure_lookups_under_store(const settings& options, const reporter& report, const std::string& name,
                                 bool with_disk) {
  bench_daemon daemon(options, {.disk = with_disk});
  auto connection = connect(daemon.socket());
  auto spec = space_of(small_object);
  auto space = must(connection.open_space(spec), "opening a space");
  auto memory = must(client::region::create("terrace-bench", small_object), "making a region");
  auto region = must(connection.register_region(memory), "registering a region");
  auto chain = digests_of(128, 1);
  store_chain(connection, space, chain, region, small_object);
  client::lookup_request request{.in = space, .what = client::prefix::of_digests(chain), .lease = true};
  // Keeps the chain, which the stores would evict otherwise.
  auto kept = must(connection.lookup(request), "looking up");
  request.lease = false;

  raw_space raw(daemon.socket(), spec);
  auto frame = raw.lookup_frame(chain);
  bare_echo echo(frame.size(), raw.round_trip(frame)); // forks, so it must come before any thread
  shared_memory from(8 * mib), to(256 * mib);

  std::vector<std::unique_ptr<storing_client>> storing;
  std::vector<std::function<void()>> stores, copies;
  for (size_t i = 0; i < storing_clients; ++i) {
    storing.push_back(std::make_unique<storing_client>(daemon.socket(), i + 1));
    stores.push_back([&each = *storing.back()] { each.work(); });
    copies.push_back([&, part = to.bytes().subspan(i * 64 * mib, 64 * mib), at = uint64_t{0}]() mutable {
      std::memcpy(part.data() + at, from.bytes().data(), 8 * mib);
      at = (at + 8 * mib) % part.size();
    });
  }
  // The daemon writes stored objects to disk, and every wake-up takes longer while a disk is written to.
  bare_disk disk(options.folder, 256 * mib, mib, 256 * mib, 2);
  if (with_disk)
    copies.push_back([&] { disk.write_all(); });
  auto ask = [&] {
    if (must(connection.lookup(request), "looking up").found_chunks != chain.size())
      give_up("a stored chunk was not found");
  };
  auto sides = interleave(
      options.rounds, [&] { return beside(ask, stores); },
      [&] { return beside([&] { echo.round_trip(); }, copies); });
  report(sides.judged({.name = name + "_p50", .unit = "us", .bounded = false}));
  report(sides.judged({.name = name + "_p99", .unit = "us", .floor = 4, .aim = 2}, 1));
}

} // namespace

void fairness(const settings& options, const reporter& report) {
  measure_clients(options, report);
  measure_groups(options, report);
}

void lookup_under_store(const settings& options, const reporter& report) {
  measure_lookups_under_store(options, report, "lookup_under_store", true);
  measure_lookups_under_store(options, report, "lookup_under_store_no_disk", false);
}

void oversubscribed(const settings& options, const reporter& report) {
  conversing_crowd resident(options, 0.8, false); // leases, and objects being stored, take the rest
  for (bool disk : {false, true}) {
    conversing_crowd crowd(options, 4, disk);
    auto sides = interleave(
        options.rounds, [&] { return std::vector{crowd.gigabytes()}; },
        [&] { return std::vector{resident.gigabytes()}; });
    report(sides.judged({.name = disk ? "oversubscribed_disk" : "oversubscribed",
                         .unit = "GB/s",
                         .direction = better::higher,
                         .bounded = false}));
  }
}

} // namespace terrace::bench
