// A remote tier in a bucket: the daemon's processor time for what it writes there and reads, beside that of a bare client of
// redis-server, which receives and sends the same bytes over TCP. How fast it goes depends on the store, a program of the tests in Python.
#include "bench/benchmark.hpp"
#include "bench/harness.hpp"
#include "bench/processor_time.hpp"
#include "bench/remote_setup.hpp"
#include "bench/shared_memory.hpp"

#include <cstdlib>
#include <iostream>

namespace terrace::bench {

void remote_s3(const settings& options, const reporter& report) {
  if (!far_daemon::possible())
    return;
  if (std::getenv("S3_SERVER") == nullptr) {
    std::cerr << "  left out: S3_SERVER is not set; bench/run sets it to tests/support/s3_server"
              << std::endl;
    return;
  }
  shared_memory memory(far_bytes);
  constexpr double gb = static_cast<double>(far_bytes) / 1e9;
  struct size {
    const char* name;
    uint64_t bytes;
  };
  for (const size& each : {size{"1MiB", far_mib}, size{"4MiB", 4 * far_mib}}) {
    const test::s3_process bucket;
    far_daemon in(options, "", &bucket);
    far_chain chain(in, each.bytes);
    std::vector<std::string> keys;
    for (size_t i = 0; i < chain.objects(); ++i)
      keys.push_back("bare/" + std::to_string(i));
    in.bare().set(keys, each.bytes, memory.bytes());
    const auto cpu_of_daemon = [&](const auto& work) {
      const double before = cpu_seconds_of(in.daemon().pid());
      work();
      return std::vector{(cpu_seconds_of(in.daemon().pid()) - before) / gb};
    };
    const auto cpu_of_client = [&](const auto& work) {
      const double before = cpu_seconds_of_this_thread();
      work();
      return std::vector{(cpu_seconds_of_this_thread() - before) / gb};
    };
    chain.store();
    auto read = interleave(
        options.rounds,
        [&] {
          chain.chill();
          return cpu_of_daemon([&] { chain.prefetch(); });
        },
        [&] { return cpu_of_client([&] { in.bare().get(keys, each.bytes, memory.bytes()); }); });
    report(read.judged(
        {.name = std::string("remote_s3_get_") + each.name, .unit = "s/GB", .floor = 3, .aim = 2}));
    auto written = interleave(
        options.rounds, [&] { return cpu_of_daemon([&] { chain.store(); }); },
        [&] { return cpu_of_client([&] { in.bare().set(keys, each.bytes, memory.bytes()); }); });
    report(written.judged(
        {.name = std::string("remote_s3_put_") + each.name, .unit = "s/GB", .floor = 3, .aim = 2}));
  }
}

} // namespace terrace::bench
