// The daemon's processor time per request, compared with a bare loop that moves the same bytes.
#include "bench/bare_copy.hpp"
#include "bench/bare_disk.hpp"
#include "bench/bare_echo.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/crowd.hpp"
#include "bench/processor_time.hpp"
#include "bench/shared_memory.hpp"
#include "bench/sizes.hpp"
#include "bench/workload.hpp"

#include <ctime>

namespace terrace::bench {

namespace {

constexpr size_t cpu_objects = 256; // objects of 1 MiB
constexpr size_t cpu_chunks = 128;
constexpr int cpu_lookups = 4000;

double own_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Returns the microseconds that `clock` counts, divided by `count`.
template <class Clock, class Work>
double cpu_us_each(size_t count, Clock&& clock, Work&& work) {
  double before = clock();
  work();
  return (clock() - before) * 1e6 / static_cast<double>(count);
}

/// Returns one value for each figure: lookup, leased lookup, store, load from host memory and from disk.
class measured_daemon {
 public:
  explicit measured_daemon(const settings& options)
      : daemon_(options), small_(connect(daemon_.socket())),
        small_space_(must(small_.open_space(space_of(4096)), "opening a space")),
        chain_(digests_of(cpu_chunks, 1)), large_(daemon_.socket(), mib, 1) {
    auto memory = must(client::region::create("terrace-bench", 4096), "making a region");
    auto region = must(small_.register_region(memory), "registering a region");
    store_chain(small_, small_space_, chain_, region, 4096);
    wait_until_written(small_);
  }

  std::vector<double> round() {
    double bare = lookup_us(false), leased = lookup_us(true);
    auto names = digests_of(cpu_objects, ++seed_);
    double store = us_each(cpu_objects, [&] {
      for (const digest& each : names)
        large_.store({each});
      wait_until_written(small_); // the disk's part belongs to the store, too
    });
    double host = load_us(names);
    wait_until_written(small_); // and the last load no longer holds its object
    must(large_.connection().admin().move({.in = large_.space(), .what = client::prefix::of_digests(names)},
                                          tier_kind::disk),
         "moving to disk");
    uint64_t before = tier_of(small_, "disk").bytes_read;
    double disk = load_us(names);
    if (tier_of(small_, "disk").bytes_read - before < cpu_objects * mib)
      give_up("objects came from host memory, not from disk");
    return {bare, leased, store, host, disk};
  }

 private:
  template <class Work>
  double us_each(size_t count, Work&& work) {
    return cpu_us_each(
        count, [this] { return cpu_seconds_of(daemon_.pid()); }, work);
  }
  double lookup_us(bool lease) {
    return us_each(cpu_lookups, [&] {
      for (int i = 0; i < cpu_lookups; ++i)
        must(small_.lookup({.in = small_space_, .what = client::prefix::of_digests(chain_), .lease = lease}),
             "looking up");
    });
  }
  double load_us(const std::vector<digest>& names) {
    return us_each(cpu_objects, [&] {
      for (const digest& each : names) {
        auto under_way = large_.begin_load({each});
        if (large_.finish(under_way) != mib)
          give_up("a stored object was not delivered");
      }
    });
  }

  bench_daemon daemon_;
  client::connection small_;
  client::space small_space_;
  std::vector<digest> chain_;
  crowd_client large_;
  uint64_t seed_ = 100;
};

/// Does the same with bare loops: the server's half of an echo, memcpy, and io_uring on a file.
class bare_loops {
 public:
  explicit bare_loops(const settings& options)
      : echo_(cpu_chunks * sizeof(digest) + 128, 256), from_(cpu_objects * mib), to_(cpu_objects * mib),
        disk_(options.folder, cpu_objects * mib, mib, cpu_objects * mib) {}

  std::vector<double> round() {
    double echo = cpu_us_each(
        cpu_lookups, [this] { return cpu_seconds_of(echo_.server()); },
        [this] {
          for (int i = 0; i < cpu_lookups; ++i)
            echo_.round_trip();
        });
    double copy = cpu_us_each(cpu_objects, own_cpu_seconds, [this] {
      seconds_to_copy({.total_bytes = cpu_objects * mib, .piece_bytes = mib}, to_.bytes(), from_.bytes());
    });
    double write = cpu_us_each(cpu_objects, own_cpu_seconds, [this] { disk_.write_all(); });
    double read = cpu_us_each(cpu_objects, own_cpu_seconds, [this] { disk_.read_all(); });
    return {echo, echo, echo + copy + write, echo + copy, echo + copy + read};
  }

 private:
  bare_echo echo_;
  shared_memory from_, to_;
  bare_disk disk_;
};

} // namespace

void cpu_per_request(const settings& options, const reporter& report) {
  measured_daemon daemon(options);
  bare_loops bare(options);
  daemon.round();
  bare.round();
  auto sides = interleave(
      options.rounds, [&] { return daemon.round(); }, [&] { return bare.round(); });
  const char* names[] = {"cpu_per_lookup", "cpu_per_leased_lookup", "cpu_per_store", "cpu_per_load",
                         "cpu_per_disk_load"};
  for (size_t i = 0; i < std::size(names); ++i)
    report(sides.judged({.name = names[i], .unit = "us CPU", .bounded = false}, i));
}

} // namespace terrace::bench
