// From disk through host memory to a region: one prefetch with a load after it, one load alone, and the time
// that a prefetch takes to end.
#include "bench/bare_disk.hpp"
#include "bench/disk_group.hpp"
#include "bench/sizes.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

namespace terrace::bench {

namespace {

constexpr uint32_t pipeline_objects = 256;
constexpr uint64_t pipeline_total_bytes = pipeline_objects * mib;
constexpr uint64_t host_bytes = 4 * pipeline_total_bytes; // the default; a prefetch takes at most half of it

/// A chain of objects that are only on disk, and a client with a region for all of them.
class cold_chain {
 public:
  explicit cold_chain(const settings& options)
      : group_(options, mib, 2 * pipeline_objects, host_bytes), client_(connect(group_.socket())),
        space_(must(client_.open_space(space_of(mib)), "opening a space")),
        memory_(must(client::region::create("terrace-pipeline", pipeline_total_bytes), "making a region")) {
    std::memset(memory_.data(), 0x3c, memory_.size());
    region_ = must(client_.register_region(memory_), "registering a region");
    for (uint64_t i = 0; i < pipeline_objects; ++i)
      runs_.push_back({.offset = i * mib, .bytes = mib});
    chain_ = group_.store_chain(client_, space_, region_, runs_);
  }

  client::connection& client() { return client_; }
  const disk_group& group() const { return group_; }

  /// Leaves the chain only on disk.
  void chill() {
    must(client_.admin().move({.in = space_, .what = what()}, tier_kind::disk), "moving to disk");
    auto left = must(client_.lookup({.in = space_, .what = what(), .tiers = on_host}), "looking up");
    if (left.found_chunks != 0)
      give_up("the chain is still in host memory");
  }

  client::ticket<client::prefetch_result> prefetch() {
    client::prefetch_request request;
    request.in = space_;
    request.what = what();
    return must(client_.async().prefetch(request), "prefetching");
  }

  /// Takes a lease, and loads under it.
  client::ticket<client::load_result> load() {
    held_ = must(client_.lookup({.in = space_, .what = what(), .lease = true}), "looking up").held;
    client::load_request request;
    request.in = space_;
    request.lease = held_.id();
    request.region = &region_;
    request.runs = runs_;
    return must(client_.async().load(request), "loading");
  }

  void expect_all(client::ticket<client::load_result>& loading) {
    if (must(loading.wait(), "loading").delivered_chunks != pipeline_objects)
      give_up("a chunk that was written to disk was not delivered");
    held_.release();
  }

 private:
  static constexpr uint32_t on_host = 1U << static_cast<unsigned>(tier_kind::host);

  client::prefix what() const { return client::prefix::of_digests(chain_); }

  disk_group group_;
  client::connection client_;
  client::space space_;
  client::region memory_;
  client::registered_region region_;
  std::vector<digest> chain_;
  std::vector<client::run> runs_;
  client::lease held_;
};

/// Returns the slower time of reading the bytes from the daemon's own file and of copying them once.
double slower_half(const disk_group& group) {
  auto bare = bare_disk::on(group.file(), group.extents_begin(), pipeline_total_bytes, mib, host_bytes);
  double read = static_cast<double>(pipeline_total_bytes) / bare.read_all();
  shared_memory from(pipeline_total_bytes), to(pipeline_total_bytes);
  double copied =
      seconds_of([&] { std::memcpy(to.bytes().data(), from.bytes().data(), pipeline_total_bytes); });
  return std::max(read, copied);
}

template <class Measured>
void pipeline(const settings& options, const reporter& report, const char* name, Measured&& measured) {
  cold_chain chain(options);
  auto sides = interleave(
      options.rounds,
      [&] {
        chain.chill();
        return std::vector{1e3 * seconds_of([&] { measured(chain); })};
      },
      [&] { return std::vector{1e3 * slower_half(chain.group())}; });
  report(sides.judged({.name = name, .unit = "ms", .floor = 1.15, .aim = 1.05}));
}

} // namespace

void prefetch_pipeline(const settings& options, const reporter& report) {
  pipeline(options, report, "prefetch_pipeline", [](cold_chain& chain) {
    auto ahead = chain.prefetch();
    auto loading = chain.load();
    chain.expect_all(loading);
    if (must(ahead.wait(), "prefetching").expected_chunks != pipeline_objects)
      give_up("host memory has no room for the prefetch");
  });
}

void load_pipeline(const settings& options, const reporter& report) {
  pipeline(options, report, "load_pipeline", [](cold_chain& chain) {
    auto loading = chain.load();
    chain.expect_all(loading);
  });
}

void cancel_latency(const settings& options, const reporter& report) {
  cold_chain chain(options);
  std::vector<double> milliseconds;
  std::minstd_rand random(1);
  int in_time = 0;
  int rounds = std::max(options.rounds, 20);
  for (int i = 0; i < rounds; ++i) {
    chain.chill();
    auto ahead = chain.prefetch();
    // A random moment between its first read and its last.
    double begin = seconds_now(), after = static_cast<double>(random() % 100) / 1e3;
    while (seconds_now() - begin < after)
      std::this_thread::yield();
    begin = seconds_now();
    bool known = must(ahead.cancel(), "cancelling");
    auto result = must(ahead.wait(), "prefetching");
    milliseconds.push_back((seconds_now() - begin) * 1e3);
    in_time += known && result.end == client::prefetch_end::cancelled;
  }
  if (in_time < rounds / 2)
    give_up("most prefetches were complete before they were cancelled");
  report({.name = "cancel_latency",
          .unit = "ms",
          .value = percentile(milliseconds, 0.99),
          .floor = 10,
          .aim = 5,
          .rounds = rounds,
          .absolute = true});
}

} // namespace terrace::bench
