// How many lookups one worker answers, and how a light client fares beside heavy ones.
#include "bench/bare_echo_server.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/load_generator.hpp"
#include "bench/placement.hpp"
#include "bench/raw_space.hpp"
#include "bench/workload.hpp"
#include "tests/support/child_process.hpp"

#include <optional>

#include <unistd.h>

namespace terrace::bench {

namespace {

constexpr uint64_t small_object = 4096;
constexpr size_t chunks = 128;
constexpr int connections = 64;
constexpr double round_seconds = 1.0;

constexpr size_t heavy_chunks = 4096;
constexpr size_t heavy_connections = 8;

// So that lookups find what they ask for.
void store(const std::string& socket_path, const client::space_spec& spec,
           const std::vector<digest>& digests) {
  auto connection = connect(socket_path);
  auto space = must(connection.open_space(spec), "opening a space");
  auto memory = must(client::region::create("terrace-bench", small_object), "making a region");
  auto region = must(connection.register_region(memory), "registering a region");
  store_chain(connection, space, digests, region, small_object);
}

// Lookups in a process of their own, on demand, for so long.
class heavy_clients {
 public:
  heavy_clients(std::vector<unique_fd> sockets, std::vector<uint8_t> frame, size_t answer_bytes) {
    auto [ours, theirs] = socket_pair();
    process_ = test::child_process([&, fd = theirs.get()] {
      ours.reset();
      uint8_t word;
      while (read_all(fd, {&word, 1})) {
        requests_per_second(sockets, frame, answer_bytes, round_seconds);
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
  std::vector<unique_fd> sockets_; // kept open here as well
};

constexpr int often = 200; ///< lookups that show whose work they are

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
  bool lease_ = false; ///< released at once
};

// p99 of a light client's lookups while the heavy clients are at work, and while they rest.
figure measure_imbalance(const settings& options, const char* name, heavy_clients& others,
                         light_client& light) {
  auto p99 = [&] {
    std::vector<double> samples;
    for (double end = seconds_now() + round_seconds; seconds_now() < end;)
      samples.push_back(seconds_of([&] { light.look_up(); }) * 1e6);
    auto copy = samples;
    fprintf(stderr, "%s n=%zu p50 %.1f p90 %.1f p95 %.1f p99 %.1f p999 %.1f\n", name, samples.size(),
            percentile(copy, .5), percentile(copy, .9), percentile(copy, .95), percentile(copy, .99),
            percentile(copy, .999));
    return percentile(std::move(samples), 0.99);
  };
  p99();
  auto sides = interleave(
      options.rounds,
      [&] {
        others.begin();
        double value = p99();
        others.wait();
        return std::vector{value};
      },
      [&] { return std::vector{p99()}; });
  return {.name = name,
          .unit = "us",
          .value = sides.value[0],
          .limit = sides.limit[0],
          .floor = 2,
          .aim = 1.5,
          .rounds = options.rounds};
}

} // namespace

void lookup_throughput(const settings& options, const reporter& report) {
  bench_daemon daemon(options, {.workers = 1});
  auto spec = space_of(small_object);
  auto digests = digests_of(chunks, 2);
  store(daemon.socket(), spec, digests);

  std::vector<unique_fd> sockets;
  std::vector<uint8_t> frame;
  size_t answer_bytes = 0;
  for (int i = 0; i < connections; ++i) {
    raw_space raw(daemon.socket(), spec);
    auto mine = raw.lookup_frame(digests);
    if (i > 0 && mine != frame)
      give_up("one spec opened two spaces");
    frame = std::move(mine);
    answer_bytes = raw.round_trip(frame);
    sockets.push_back(raw.release());
  }
  bare_echo_server echo(connections, frame.size(), answer_bytes);
  auto sides = interleave(
      options.rounds,
      [&] { return std::vector{requests_per_second(sockets, frame, answer_bytes, round_seconds)}; },
      [&] { return std::vector{requests_per_second(echo.clients(), frame, answer_bytes, round_seconds)}; });
  report({.name = "lookup_throughput",
          .unit = "requests/s",
          .value = sides.value[0],
          .limit = sides.limit[0],
          .floor = 0.3,
          .aim = 0.45,
          .rounds = options.rounds,
          .direction = better::higher});
}

// Where connections are is the daemon's choice: an idle one deals them to its workers in turn, a busy one gives a new
// connection to the worker that does least. So every second one of the first is on one worker, and a light client that
// comes while these are at work is on the other.
void imbalance(const settings& options, const reporter& report) {
  bench_daemon daemon(options, {.workers = 2});
  auto spec = space_of(small_object);
  auto many = digests_of(heavy_chunks, 3);
  store(daemon.socket(), spec, many);
  auto few = std::vector(many.begin(), many.begin() + chunks);

  // The daemon says which worker a client gets by how busy they are, so clients come until enough have the same one.
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
  size_t answer_bytes = raw_space(daemon.socket(), spec).round_trip(frame);
  heavy_clients others(std::move(heavy), frame, answer_bytes);

  // On two processors: the heavy clients with the worker that serves them, the light one with the other worker.
  place(others.pid(), 0);
  place_apart(daemon.pid(), worker, 0, 1);
  place(::getpid(), 1);
  report(measure_imbalance(options, "imbalance", others, *elsewhere));
  elsewhere->take_leases(true);
  auto leased = measure_imbalance(options, "imbalance_leased", others, *elsewhere);
  leased.bounded = false; // it waits for the tier, which works for the heavy clients and on their processor
  report(leased);
  elsewhere->take_leases(false);
  for (pid_t process : {others.pid(), daemon.pid(), ::getpid()})
    release(process);
  auto unplaced = measure_imbalance(options, "imbalance_unplaced", others, *elsewhere);
  unplaced.bounded = false; // four busy threads on two processors: the kernel's slices
  report(unplaced);
  auto shared = measure_imbalance(options, "imbalance_same_worker", others, *beside);
  shared.bounded = false; // it queues behind requests of 4,096 digests each
  report(shared);
}

} // namespace terrace::bench
