// Stores objects to and loads them from disk, compared with bare io_uring loops and fio on a file in the same
// state; also reads during a burst of stores.
#include "bench/bare_disk.hpp"
#include "bench/disk_group.hpp"
#include "bench/fio.hpp"
#include "bench/sizes.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <thread>

namespace terrace::bench {

namespace {

constexpr uint64_t disk_total_bytes = 1ULL << 30;
constexpr uint64_t sizes[] = {256 * kib, mib, 4 * mib, 16 * mib};

double gigabytes(double bytes_a_second) { return bytes_a_second / 1e9; }

std::string suffix(uint64_t object_bytes) {
  return object_bytes < mib ? "_" + std::to_string(object_bytes / kib) + "k"
                            : "_" + std::to_string(object_bytes / mib) + "m";
}

figure disk_figure(std::string name) {
  return {.name = std::move(name), .unit = "GB/s", .floor = 0.9, .aim = 0.97, .direction = better::higher};
}

/// The bare rates of one round.
struct bare_rates {
  double alike = 0; ///< rate of the bare loop with as much memory as the daemon has
  /// Rate of the bare loop with one buffer per request in flight; the buffers stay in the caches.
  double small = 0;
  std::optional<double> fio;

  std::vector<double> in_gigabytes() const {
    std::vector<double> all = {gigabytes(alike), gigabytes(small)};
    if (fio)
      all.push_back(gigabytes(*fio));
    return all;
  }
};

/// Reports a figure against the highest of the bare rates, which is the limit, and against each of them,
/// without a bound. Machines differ in which rate is highest. `limits` are `bare_rates::in_gigabytes`, [which
/// rate][round].
void report_disk_figures(const reporter& report, const std::string& name, const std::vector<double>& values,
                         std::span<const std::vector<double>> limits) {
  auto higher = [](const auto& a, const auto& b) { return median(a) < median(b); };
  report(of_rounds(disk_figure(name), values, *std::max_element(limits.begin(), limits.end(), higher)));
  const char* beside[] = {"_beside_bare", "_beside_small", "_beside_fio"};
  for (size_t i = 0; i < limits.size(); ++i) {
    figure f = disk_figure(name + beside[i]);
    f.bounded = false;
    report(of_rounds(f, values, limits[i]));
  }
}

/// Writes a fallocated file of `disk_total_bytes`: the first pass, and the next one.
std::pair<bare_rates, bare_rates> bare_writes(const settings& options, uint32_t block_bytes,
                                              uint64_t memory_bytes) {
  std::pair<bare_rates, bare_rates> passes;
  auto write = [&](uint64_t memory, double bare_rates::*rate) {
    bare_disk bare(options.folder, disk_total_bytes, block_bytes, memory);
    passes.first.*rate = bare.write_all();
    passes.second.*rate = bare.write_all();
  };
  write(memory_bytes, &bare_rates::alike);
  write(0, &bare_rates::small);
  bare_disk fresh(options.folder, disk_total_bytes, block_bytes);
  fio_job job{.file = fresh.path(), .bytes = disk_total_bytes, .block_bytes = block_bytes, .writes = true};
  passes.first.fio = fio_rate(job);
  passes.second.fio = fio_rate(job);
  return passes;
}

/// Reads `bytes` of the daemon's file. The daemon may have ended.
bare_rates bare_reads(bare_disk& alike, uint64_t begin, uint64_t bytes, uint32_t block_bytes) {
  bare_rates rates;
  rates.alike = alike.read_all();
  rates.small = bare_disk::on(alike.path(), begin, bytes, block_bytes).read_all();
  rates.fio = fio_rate({.file = alike.path(), .begin = begin, .bytes = bytes, .block_bytes = block_bytes});
  return rates;
}

// A client on a thread of its own that stores new objects as fast as the daemon takes them.
class store_burst {
 public:
  store_burst(const std::string& socket, uint64_t object_bytes)
      : thread_([this, socket, object_bytes] { work(socket, object_bytes); }) {}
  store_burst(const store_burst&) = delete;
  store_burst& operator=(const store_burst&) = delete;
  ~store_burst() {
    over_ = true;
    thread_.join();
  }

 private:
  void work(const std::string& socket, uint64_t object_bytes) {
    auto connection = connect(socket);
    auto space = must(connection.open_space(space_of(object_bytes)), "opening a space");
    auto memory = must(client::region::create("terrace-burst", object_bytes), "making a region");
    std::memset(memory.data(), 0x5a, memory.size());
    auto region = must(connection.register_region(memory), "registering a region");
    static std::atomic<uint64_t> seed = 1ULL << 32;
    std::deque<client::ticket<client::store_result>> under_way;
    std::vector<digest> names;
    for (size_t i = 0; !over_; ++i) {
      if (i % 1024 == 0)
        names = digests_of(1024, ++seed);
      if (under_way.size() == disk_depth) {
        must(under_way.front().wait(), "storing");
        under_way.pop_front();
      }
      client::run run{.offset = 0, .bytes = object_bytes};
      client::store_request request;
      request.in = space;
      request.what = client::prefix::of_digests({&names[i % 1024], 1});
      request.region = &region;
      request.runs = {&run, 1};
      under_way.push_back(must(connection.async().store(request), "storing"));
    }
    for (auto& ticket : under_way)
      must(ticket.wait(), "storing");
  }

  std::atomic<bool> over_ = false;
  std::thread thread_;
};

} // namespace

void disk_load(const settings& options, const reporter& report) {
  for (uint64_t object_bytes : sizes) {
    // A pass must exceed what requests read ahead and what host memory keeps, or bytes would come from there.
    uint64_t pass_bytes = std::max(disk_total_bytes, 256 * object_bytes);
    size_t objects = pass_bytes / object_bytes;
    uint64_t host_bytes = 4 * disk_depth * object_bytes;
    auto block_bytes = static_cast<uint32_t>(object_bytes);
    double loaded = 0;
    auto sides = interleave(
        options.rounds, [&] { return std::vector{gigabytes(loaded)}; },
        // One function does both: the limits read the same file, the first into the memory that the daemon
        // has returned.
        [&] {
          auto group = std::make_unique<disk_group>(options, object_bytes, objects, host_bytes);
          std::vector<digest> names;
          group->store(objects, &names);
          uint64_t begin = group->extents_begin();
          auto bare = bare_disk::on(group->file(), begin, pass_bytes, block_bytes, host_bytes);
          group->load(names); // the first pass may find the last stored objects in host memory
          loaded = group->load(names);
          group.reset();
          return bare_reads(bare, begin, pass_bytes, block_bytes).in_gigabytes();
        });
    report_disk_figures(report, "disk_load" + suffix(object_bytes), sides.values[0], sides.limits);
  }
}

void disk_store(const settings& options, const reporter& report) {
  for (uint64_t object_bytes : sizes) {
    constexpr uint64_t host_bytes = 512 * mib;
    size_t objects = disk_total_bytes / object_bytes;
    auto sides = interleave(
        options.rounds,
        [&] {
          // The file is fallocated, and not written yet.
          disk_group fresh(options, object_bytes, objects, host_bytes);
          double first = fresh.store(objects);
          double steady = fresh.store(objects);
          return std::vector{gigabytes(first), gigabytes(steady)};
        },
        [&] {
          auto [first, steady] = bare_writes(options, static_cast<uint32_t>(object_bytes), host_bytes);
          auto all = first.in_gigabytes(), next = steady.in_gigabytes();
          all.insert(all.end(), next.begin(), next.end());
          return all;
        });
    std::string name = "disk_store" + suffix(object_bytes);
    std::span limits(sides.limits);
    report_disk_figures(report, name + "_first", sides.values[0], limits.first(limits.size() / 2));
    report_disk_figures(report, name + "_steady", sides.values[1], limits.subspan(limits.size() / 2));
  }
}

void disk_mixed(const settings& options, const reporter& report) {
  constexpr uint64_t read_bytes = disk_total_bytes / 2;
  for (uint64_t object_bytes : {mib, 4 * mib}) {
    size_t objects = read_bytes / object_bytes;
    // Has room for the burst in addition to what is read, which stays because it is used.
    disk_group group(options, object_bytes, objects * 5, 256 * mib);
    std::vector<digest> names;
    group.store(objects, &names);
    double written = 0;
    auto sides = interleave(
        options.rounds,
        [&] {
          uint64_t before = tier_of(group.connection(), "disk").bytes_written;
          double begin = seconds_now();
          double rate = 0;
          {
            store_burst burst(group.socket(), object_bytes);
            // The run is long enough for writes to get through: each waits behind some hundred milliseconds
            // of reads.
            double seconds = 0;
            for (int pass = 0; pass < 3; ++pass)
              seconds += static_cast<double>(read_bytes) / group.load(names);
            rate = 3 * static_cast<double>(read_bytes) / seconds;
            written = static_cast<double>(tier_of(group.connection(), "disk").bytes_written - before) /
                      (seconds_now() - begin);
          }
          group.drain();
          return std::vector{gigabytes(rate), gigabytes(written)};
        },
        [&] {
          group.load(names); // the last writes may still keep the device busy
          return std::vector{gigabytes(group.load(names))};
        });
    figure reads = disk_figure("disk_mixed" + suffix(object_bytes));
    reads.floor = 0.7;
    reads.aim = 0.85;
    report(sides.judged(reads));
    figure writes = disk_figure("disk_mixed" + suffix(object_bytes) + "_stored");
    writes.bounded = false;
    report(sides.judged(writes, 1));
  }
}

} // namespace terrace::bench
