// Objects copied into and out of host memory, compared with memcpy between the same kinds of mappings. memcpy
// uses one thread where the client copies, and as many as the daemon has copiers where the daemon copies.
#include "base/copy_memory.hpp"
#include "bench/bare_copy.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/shared_memory.hpp"
#include "bench/workload.hpp"

#include <cstring>
#include <deque>

namespace terrace::bench {

namespace {

constexpr uint64_t object_bytes = 4ULL << 20;
const size_t depth = copies_in_flight();
constexpr size_t leased_at_once = 4; ///< objects that a client copies itself under one lease
// 320 MiB: more than the caches, and less than leases may hold of a default daemon's memory.
constexpr size_t host_objects = 80;
constexpr uint64_t host_total_bytes = host_objects * object_bytes;

double gigabytes(uint64_t bytes, double seconds) { return static_cast<double>(bytes) / 1e9 / seconds; }

/// Returns GB/s of memcpy with one object per call, and in parts. The two differ, see base/copy_memory.hpp.
std::vector<double> bare_copies(size_t threads, std::span<uint8_t> to, std::span<const uint8_t> from) {
  std::vector<double> rates;
  for (uint64_t call : {object_bytes, uint64_t{memory_copy_part_bytes}})
    rates.push_back(gigabytes(host_total_bytes,
                              seconds_to_copy({host_total_bytes, object_bytes, threads, call}, to, from)));
  return rates;
}

/// Reports a row with bounds, against one object per call, and one without, against parts.
void report_both(const reporter& report, const sides& measured, const std::string& name) {
  report(measured.judged(
      {.name = name, .unit = "GB/s", .floor = 0.9, .aim = 0.97, .direction = better::higher}));
  report(measured.judged(
      {.name = name + "_of_parts", .unit = "GB/s", .direction = better::higher, .bounded = false}, 1));
}

struct group {
  bench_daemon daemon;
  client::connection connection;
  client::space space;
  client::region memory;
  client::registered_region region;

  group(const settings& options, bool isolated)
      : daemon(options, {.isolated = isolated}), connection(connect(daemon.socket())),
        space(must(connection.open_space(space_of(object_bytes)), "opening a space")),
        memory(must(client::region::create("terrace-bench", depth * object_bytes), "making a region")) {
    std::memset(memory.data(), 0x3c, memory.size());
    region = must(connection.register_region(memory), "registering a region");
  }
};

// In a mapped group, this process takes a lease for every few objects and copies them.
void load_mapped(const settings& options, const reporter& report) {
  group g(options, false);
  auto chain = digests_of(host_objects, 4);
  store_chain(g.connection, g.space, chain, g.region, object_bytes);
  wait_until_written(g.connection);
  shared_memory target(leased_at_once * object_bytes);
  std::vector<std::span<uint8_t>> into;
  for (size_t i = 0; i < leased_at_once; ++i)
    into.push_back(target.bytes().subspan(i * object_bytes, object_bytes));

  auto lookup = [&](bool lease) {
    return must(
        g.connection.lookup({.in = g.space, .what = client::prefix::of_digests(chain), .lease = lease}),
        "looking up");
  };
  auto value = [&] {
    double seconds = seconds_of([&] {
      auto hit = lookup(true);
      if (hit.found_chunks != host_objects)
        give_up("a stored chunk was not found");
      for (uint32_t first = 0; first < host_objects; first += leased_at_once)
        must(g.connection.load_under_lease(hit.held, {.first = first, .count = leased_at_once}, into),
             "loading");
    });
    return std::vector(2, gigabytes(host_total_bytes, seconds));
  };
  auto hit = lookup(true); // the lease is held, so that the limit copies from where the objects really are
  auto located = must(g.connection.read_lease(hit.held.id()), "reading a lease");
  auto limit = [&] {
    std::vector<double> rates;
    for (uint64_t call : {object_bytes, uint64_t{memory_copy_part_bytes}}) {
      double seconds = seconds_of([&] {
        for (size_t i = 0; i < host_objects; ++i)
          for (uint64_t done = 0; done < object_bytes; done += call)
            std::memcpy(into[i % leased_at_once].data() + done, located.objects[i].data() + done, call);
      });
      rates.push_back(gigabytes(host_total_bytes, seconds));
    }
    return rates;
  };
  value();
  report_both(report, interleave(options.rounds, value, limit), "host_load_mapped");
}

// Sends any number of requests for one object each, `depth` of them in flight, each with its own part of the
// region.
template <class Submit>
double pipelined(Submit&& submit) {
  return seconds_of([&] {
    std::deque<decltype(submit(size_t{0}))> under_way;
    for (size_t i = 0; i < host_objects; ++i) {
      if (under_way.size() == depth) {
        must(under_way.front().wait(), "waiting");
        under_way.pop_front();
      }
      under_way.push_back(submit(i));
    }
    for (auto& ticket : under_way)
      must(ticket.wait(), "waiting");
  });
}

// In an isolated group, the daemon copies into a region.
void load_isolated(const settings& options, const reporter& report) {
  group g(options, true);
  auto chain = digests_of(host_objects, 5);
  store_chain(g.connection, g.space, chain, g.region, object_bytes);
  wait_until_written(g.connection);
  shared_memory arena(host_total_bytes), target(depth * object_bytes);
  auto value = [&] {
    double seconds = pipelined([&](size_t i) {
      client::run run{.offset = i % depth * object_bytes, .bytes = object_bytes};
      client::load_request request;
      request.in = g.space;
      request.what = client::prefix::of_digests(chain);
      request.range = {.first = static_cast<uint32_t>(i), .count = 1};
      request.region = &g.region;
      request.runs = {&run, 1};
      return must(g.connection.async().load(request), "loading");
    });
    return std::vector(2, gigabytes(host_total_bytes, seconds));
  };
  value();
  report_both(report,
              interleave(options.rounds, value,
                         [&] { return bare_copies(default_copiers(), target.bytes(), arena.bytes()); }),
              "host_load_isolated");
}

} // namespace

void host_load(const settings& options, const reporter& report) {
  load_mapped(options, report);
  load_isolated(options, report);
}

void host_store(const settings& options, const reporter& report) {
  group g(options, false);
  shared_memory arena(host_total_bytes);
  uint64_t seed = 100;
  auto value = [&] {
    auto fresh = digests_of(host_objects, ++seed); // the arena fills, and from then on each store evicts
    double seconds = pipelined([&](size_t i) {
      client::run run{.offset = i % depth * object_bytes, .bytes = object_bytes};
      client::store_request request;
      request.in = g.space;
      request.what = client::prefix::of_digests({&fresh[i], 1});
      request.region = &g.region;
      request.runs = {&run, 1};
      return must(g.connection.async().store(request), "storing");
    });
    wait_until_written(
        g.connection); // the time counts for the next stores, and after the last one for the disk
    return std::vector(2, gigabytes(host_total_bytes, seconds));
  };
  for (int i = 0; i < 3; ++i)
    value();
  report_both(report,
              interleave(options.rounds, value,
                         [&] { return bare_copies(default_copiers(), arena.bytes(), g.memory.bytes()); }),
              "host_store");
}

} // namespace terrace::bench
