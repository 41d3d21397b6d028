// The cost of a new client's first copies, compared with memcpy on as many threads as the daemon copies with.
#include "bench/bare_copy.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/shared_memory.hpp"
#include "bench/workload.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

namespace terrace::bench {

namespace {

constexpr uint64_t touched_object_bytes = 4ULL << 20;
constexpr size_t touched_objects = 32;
constexpr uint64_t touched_bytes = touched_objects * touched_object_bytes;
constexpr uint64_t touched_host_bytes = 1ULL << 30;

double gigabytes_per_second(double seconds) { return static_cast<double>(touched_bytes) / 1e9 / seconds; }

enum class written { before, after, never };

struct new_client {
  client::connection connection;
  client::space space;
  client::region memory;
  client::registered_region region;

  new_client(const std::string& socket, written when)
      : connection(connect(socket)),
        space(must(connection.open_space(space_of(touched_object_bytes)), "opening a space")),
        memory(must(client::region::create("terrace-bench", touched_bytes), "making a region")) {
    if (when == written::before)
      std::memset(memory.data(), 0x3c, memory.size());
    region = must(connection.register_region(memory), "registering a region");
    if (when == written::after)
      std::memset(memory.data(), 0x3c, memory.size());
  }

  /// Sends one request per object, several in flight.
  template <class Submit>
  double all_objects(Submit&& submit) {
    const size_t depth = copies_in_flight();
    return seconds_of([&] {
      std::deque<decltype(submit(client::chunk_range{}, client::run{}))> in_flight;
      for (size_t i = 0; i < touched_objects; ++i) {
        if (in_flight.size() == depth) {
          must(in_flight.front().wait(), "waiting");
          in_flight.pop_front();
        }
        in_flight.push_back(
            submit(client::chunk_range{static_cast<uint32_t>(i), 1},
                   client::run{.offset = i * touched_object_bytes, .bytes = touched_object_bytes}));
      }
      for (auto& ticket : in_flight)
        must(ticket.wait(), "waiting");
    });
  }

  double store(const std::vector<digest>& chain) {
    return gigabytes_per_second(all_objects([&](client::chunk_range range, client::run run) {
      client::store_request request;
      request.in = space;
      request.what = client::prefix::of_digests(std::span(chain).first(range.first + 1));
      request.range = range;
      request.region = &region;
      request.runs = {&run, 1};
      return must(connection.async().store(request), "storing");
    }));
  }

  double load(const std::vector<digest>& chain) {
    return gigabytes_per_second(all_objects([&](client::chunk_range range, client::run run) {
      client::load_request request;
      request.in = space;
      request.what = client::prefix::of_digests(chain);
      request.range = range;
      request.region = &region;
      request.runs = {&run, 1};
      return must(connection.async().load(request), "loading");
    }));
  }
};

} // namespace

void first_touch(const settings& options, const reporter& report) {
  bench_daemon daemon(options, {.host_bytes = touched_host_bytes});
  uint64_t seed = 1000;
  auto fresh = [&] { return digests_of(touched_objects, ++seed); };
  {
    new_client first(daemon.socket(),
                     written::before); // fills the arena, and waits for the part that is not yet committed
    for (uint64_t bytes = 0; bytes <= touched_host_bytes; bytes += touched_bytes)
      first.store(fresh());
  }
  shared_memory from(touched_bytes), to(touched_bytes);
  auto sides = interleave(
      options.rounds,
      [&] {
        std::vector<double> rates;
        auto chain = fresh();
        {
          new_client one(daemon.socket(), written::before);
          rates.push_back(one.store(chain));
          rates.push_back(one.store(fresh()));
        }
        {
          new_client one(daemon.socket(), written::after);
          rates.push_back(one.store(fresh()));
        }
        {
          new_client one(daemon.socket(), written::before);
          rates.push_back(one.load(chain));
        }
        new_client one(daemon.socket(), written::never);
        rates.push_back(one.load(chain));
        return rates;
      },
      [&] {
        copy_plan plan{
            .total_bytes = touched_bytes, .piece_bytes = touched_object_bytes, .threads = default_copiers()};
        std::vector rates(4, gigabytes_per_second(seconds_to_copy(plan, to.bytes(), from.bytes())));
        // The faster of the two ways to make memory, if memory has to be made.
        double fastest = 0;
        for (bool large : {false, true}) {
          auto made = shared_memory::untouched(touched_bytes);
          plan.large_pages = large;
          fastest =
              std::max(fastest, gigabytes_per_second(seconds_to_copy(plan, made.bytes(), from.bytes())));
        }
        rates.push_back(fastest);
        return rates;
      });
  auto show = [&](size_t i, const char* name, double floor, double aim) {
    report(sides.judged({.name = name,
                         .unit = "GB/s",
                         .floor = floor,
                         .aim = aim,
                         .rounds = options.rounds,
                         .direction = better::higher,
                         .bounded = floor != 0},
                        i));
  };
  show(0, "first_touch_store", 0.75, 0.9);
  show(1, "first_touch_later", 0.9, 0.95);
  show(2, "first_touch_unwritten", 0, 0);
  show(3, "first_touch_load_written", 0, 0);
  show(4, "first_touch_load", 0.5, 0.75);
}

} // namespace terrace::bench
