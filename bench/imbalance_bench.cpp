// How much heavy clients on another worker disturb a light client. Nobody is placed on a processor.
#include "bench/bare_echo.hpp"
#include "bench/bare_echo_server.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/load_generator.hpp"
#include "bench/placement.hpp"
#include "bench/raw_space.hpp"
#include "bench/sizes.hpp"
#include "bench/workload.hpp"
#include "tests/support/child_process.hpp"

#include <functional>
#include <iostream>
#include <optional>
#include <thread>

#include <unistd.h>

namespace terrace::bench {

namespace {

constexpr size_t imbalance_chunks = 128;
constexpr double imbalance_round_seconds = 1.0;

constexpr size_t heavy_chunks = 4096;
constexpr size_t heavy_connections = 8;

// Clients in a process of their own that make lookups for a given time, on demand.
class heavy_clients {
 public:
  heavy_clients(std::vector<unique_fd> sockets, std::vector<uint8_t> frame, size_t answer_bytes) {
    auto [ours, theirs] = socket_pair();
    process_ = test::child_process([&, fd = theirs.get()] {
      ours.reset();
      uint8_t word;
      while (read_all(fd, {&word, 1})) {
        requests_per_second(sockets, frame, answer_bytes, imbalance_round_seconds);
        write_all(fd, {&word, 1});
      }
    });
    control_ = std::move(ours);
    sockets_ = std::move(sockets);
  }

  pid_t pid() const { return process_.pid(); }

  void begin() {
    uint8_t word = 1;
    write_all(control_.get(), {&word, 1});
  }
  void wait() {
    uint8_t word;
    if (!read_all(control_.get(), {&word, 1}))
      give_up("the heavy clients ended");
  }

 private:
  unique_fd control_;
  test::child_process process_;
  std::vector<unique_fd> sockets_; // this process keeps them open as well
};

constexpr int often = 200; ///< lookups that show which worker does the work

void look_up_often(raw_space& raw, const std::vector<digest>& digests) {
  auto frame = raw.lookup_frame(digests);
  for (int i = 0; i < often; ++i)
    raw.round_trip(frame);
}

class light_client {
 public:
  light_client(const std::string& socket_path, const client::space_spec& spec, std::vector<digest> digests)
      : connection_(connect(socket_path)), space_(must(connection_.open_space(spec), "opening a space")),
        digests_(std::move(digests)) {}

  void take_leases(bool takes) { lease_ = takes; }

  void look_up() {
    must(connection_.lookup({.in = space_, .what = client::prefix::of_digests(digests_), .lease = lease_}),
         "looking up");
  }
  void look_up_often() {
    for (int i = 0; i < often; ++i)
      look_up();
  }

 private:
  client::connection connection_;
  client::space space_;
  std::vector<digest> digests_;
  bool lease_ = false; ///< each lookup takes a lease and releases it at once
};

/// Returns the p99 of the latency of repeated work, while the heavy clients work and while they rest: one
/// value each.
sides beside_and_alone(const settings& options, heavy_clients& others, const std::function<void()>& work) {
  auto p99 = [&] {
    std::vector<double> samples;
    for (double end = seconds_now() + imbalance_round_seconds; seconds_now() < end;)
      samples.push_back(seconds_of(work) * 1e6);
    return percentile(std::move(samples), 0.99);
  };
  p99();
  return interleave(
      options.rounds,
      [&] {
        others.begin();
        double value = p99();
        others.wait();
        return std::vector{value};
      },
      [&] { return std::vector{p99()}; });
}

std::vector<unique_fd> copies_of(const std::vector<unique_fd>& sockets) {
  std::vector<unique_fd> copies;
  for (const unique_fd& each : sockets)
    copies.emplace_back(::dup(each.get()));
  return copies;
}

// The daemon chooses the workers of connections: an idle daemon deals them out in turn, a busy one gives a
// new connection to the least busy worker.
void measure_imbalance(const settings& options, const reporter& report, uint32_t workers,
                       const std::string& suffix) {
  bench_daemon daemon(options, {.workers = workers});
  auto spec = space_of(small_object);
  auto many = digests_of(heavy_chunks, 3);
  store_small(daemon.socket(), spec, many);
  auto few = std::vector(many.begin(), many.begin() + imbalance_chunks);

  // Connects clients until enough have the same worker.
  std::vector<unique_fd> heavy, rest;
  std::vector<uint8_t> frame;
  pid_t worker = 0;
  while (heavy.size() < heavy_connections) {
    raw_space raw(daemon.socket(), spec);
    pid_t serves = busiest_worker(daemon.pid(), [&] { look_up_often(raw, few); });
    worker = worker == 0 ? serves : worker;
    if (serves == worker)
      frame = raw.lookup_frame(many);
    (serves == worker ? heavy : rest).push_back(raw.release());
  }
  std::optional<light_client> beside, elsewhere;
  while (!beside || !elsewhere) {
    light_client light(daemon.socket(), spec, few);
    bool same = busiest_worker(daemon.pid(), [&] { light.look_up_often(); }) == worker;
    (same ? beside : elsewhere).emplace(std::move(light));
  }
  raw_space raw(daemon.socket(), spec);
  size_t answer_bytes = raw.round_trip(frame);
  auto light_frame = raw.lookup_frame(few);
  heavy_clients others(std::move(heavy), frame, answer_bytes);

  // The limit without Terrace: as many processes, and as many bytes.
  bare_echo light_echo(light_frame.size(), raw.round_trip(light_frame));
  bare_echo_server heavy_server(heavy_connections, frame.size(), answer_bytes);
  heavy_clients echoing(copies_of(heavy_server.clients()), frame, answer_bytes);
  auto echo = beside_and_alone(options, echoing, [&] { light_echo.round_trip(); });

  for (bool leased : {false, true}) {
    elsewhere->take_leases(leased);
    auto name = std::string(leased ? "imbalance_leased" : "imbalance") + suffix;
    auto light = beside_and_alone(options, others, [&] { elsewhere->look_up(); });
    report(light.judged({.name = name, .unit = "us", .floor = 2, .aim = 1.5}));
    report(of_rounds({.name = name + "_contended", .unit = "us", .bounded = false}, light.values[0],
                     echo.values[0]));
  }
  auto shared = beside_and_alone(options, others, [&] { beside->look_up(); });
  report(shared.judged({.name = "imbalance_same_worker" + suffix, .unit = "us", .bounded = false}));
}

} // namespace

void imbalance(const settings& options, const reporter& report) {
  measure_imbalance(options, report, 2, "");
  constexpr unsigned wanted = 6; // four workers and two clients
  if (std::thread::hardware_concurrency() >= wanted)
    measure_imbalance(options, report, 4, "_of_four");
  else
    std::cerr << "imbalance: without the figures of four workers, which need " << wanted << " processors"
              << std::endl;
}

} // namespace terrace::bench
