// Objects to and from disk, beside a bare io_uring loop on a file in the same state.
#include "bench/bare_disk.hpp"
#include "bench/benchmark.hpp"
#include "bench/daemon_process.hpp"
#include "bench/workload.hpp"

#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

namespace terrace::bench {

namespace {

constexpr uint32_t depth = 32;
constexpr uint64_t total_bytes = 1ULL << 30;
constexpr uint64_t header_bytes = 4096;     // in front of each object
constexpr uint64_t superblock_area = 65536; // in front of the first
constexpr double patience_seconds = 30;

double gigabytes(double bytes_a_second) { return bytes_a_second / 1e9; }

std::string suffix(uint64_t object_bytes) { return object_bytes == 1ULL << 20 ? "_1m" : "_4m"; }

// A daemon whose disk holds `total_bytes` of objects and whose host memory holds what is under way, and no more than
// that: what is stored must go to disk, what is loaded must come from there.
struct disk_group {
  uint64_t object_bytes;
  size_t objects;
  daemon_process daemon;
  client::connection connection;
  client::space space;
  client::region memory;
  client::registered_region region;
  uint64_t seed = 1000;

  disk_group(const settings& options, uint64_t each, uint64_t host_bytes)
      : object_bytes(each), objects(total_bytes / each),
        daemon(options.terraced, options.folder,
               {.host_bytes = host_bytes,
                .disk_bytes = total_bytes + total_bytes / each * header_bytes + superblock_area}),
        connection(connect(daemon.socket_path())),
        space(must(connection.open_space(space_of(object_bytes)), "opening a space")),
        memory(must(client::region::create("terrace-bench", depth * object_bytes), "making a region")) {
    std::memset(memory.data(), 0x3c, memory.size());
    region = must(connection.register_region(memory), "registering a region");
  }

  // Stores new objects, each a chain of its own, until all are on disk. Bytes a second.
  double store(std::vector<digest>* names = nullptr) {
    auto fresh = digests_of(objects, ++seed);
    uint64_t before = tier_of(connection, "disk").bytes_written;
    double begin = seconds_now();
    std::deque<client::ticket<client::store_result>> under_way;
    for (size_t i = 0; i < objects; ++i) {
      if (under_way.size() == depth) {
        must(connection.wait(under_way.front()), "storing");
        under_way.pop_front();
      }
      client::run run{.offset = i % depth * object_bytes, .bytes = object_bytes};
      client::store_request request;
      request.in = space;
      request.what = client::prefix::of_digests({&fresh[i], 1});
      request.region = &region;
      request.runs = {&run, 1};
      under_way.push_back(must(connection.submit_store(request), "storing"));
    }
    for (auto& ticket : under_way)
      must(connection.wait(ticket), "storing");
    // A store is answered when host memory has it; the disk follows. A millisecond is a fraction of a percent.
    for (uint64_t written = 0; written < total_bytes;
         written = tier_of(connection, "disk").bytes_written - before) {
      if (seconds_now() - begin > patience_seconds)
        give_up("the disk tier has written " + std::to_string(written) + " of " +
                std::to_string(total_bytes) + " bytes that were stored");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    double seconds = seconds_now() - begin;
    if (names)
      *names = std::move(fresh);
    return static_cast<double>(total_bytes) / seconds;
  }

  // Brings every object into host memory, in place and under a lease, `depth` at a time. Bytes a second.
  double load(const std::vector<digest>& names) {
    struct one {
      client::lease held;
      client::ticket<client::located_objects> reading;
    };
    uint64_t before = tier_of(connection, "disk").bytes_read;
    double seconds = seconds_of([&] {
      std::deque<one> under_way;
      for (auto& name : names) {
        if (under_way.size() == depth) {
          must(connection.wait(under_way.front().reading), "reading");
          under_way.pop_front();
        }
        auto hit = must(
            connection.lookup({.in = space, .what = client::prefix::of_digests({&name, 1}), .lease = true}),
            "looking up");
        if (hit.found_chunks != 1)
          give_up("an object that was written to disk was not found");
        auto reading = must(connection.submit_read_lease(hit.held.id()), "reading");
        under_way.push_back({std::move(hit.held), std::move(reading)});
      }
      for (auto& o : under_way)
        must(connection.wait(o.reading), "reading");
    });
    if (tier_of(connection, "disk").bytes_read - before < total_bytes / 10 * 9)
      give_up("objects came from host memory, not from disk");
    return static_cast<double>(total_bytes) / seconds;
  }
};

figure disk_figure(std::string name, double value, double limit, int rounds) {
  return {.name = std::move(name),
          .unit = "GB/s",
          .value = gigabytes(value),
          .limit = gigabytes(limit),
          .floor = 0.9,
          .aim = 0.97,
          .rounds = rounds,
          .direction = better::higher};
}

} // namespace

void disk_load(const settings& options, const reporter& report) {
  for (uint64_t object_bytes : {1ULL << 20, 4ULL << 20}) {
    disk_group g(options, object_bytes, 3 * depth * object_bytes);
    std::vector<digest> names;
    g.store(&names);
    bare_disk bare(options.folder, total_bytes, static_cast<uint32_t>(object_bytes), depth);
    bare.write_all(); // both files: fallocated, each block written once
    auto sides = interleave(
        options.rounds, [&] { return std::vector{g.load(names)}; },
        [&] { return std::vector{bare.read_all()}; });
    report(disk_figure("disk_load" + suffix(object_bytes), sides.value[0], sides.limit[0], options.rounds));
  }
}

void disk_store(const settings& options, const reporter& report) {
  for (uint64_t object_bytes : {1ULL << 20, 4ULL << 20}) {
    bare_disk bare(options.folder, total_bytes, static_cast<uint32_t>(object_bytes), depth);
    auto sides = interleave(
        options.rounds,
        [&] {
          disk_group fresh(options, object_bytes,
                           512ULL << 20); // its file is fallocated, and not written yet
          double first = fresh.store();
          double steady = fresh.store();
          return std::vector{first, steady};
        },
        [&] {
          bare.forget();
          double first = bare.write_all();
          double steady = bare.write_all();
          return std::vector{first, steady};
        });
    std::string name = "disk_store" + suffix(object_bytes);
    report(disk_figure(name + "_first", sides.value[0], sides.limit[0], options.rounds));
    report(disk_figure(name + "_steady", sides.value[1], sides.limit[1], options.rounds));
  }
}

} // namespace terrace::bench
