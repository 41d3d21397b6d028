#include "cli/self_measure.hpp"

#include "base/random_id.hpp"
#include "cli/file_object.hpp"
#include "cli/object_client.hpp"
#include "cli/random_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace terrace::cli {

namespace {

using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point begin) {
  return std::chrono::duration<double>(steady::now() - begin).count();
}

double rate(uint64_t bytes, steady::time_point begin) {
  return static_cast<double>(bytes) / seconds_since(begin);
}

/// The number of copiers of a daemon on this machine that is not configured otherwise (`copier.threads`).
uint64_t default_copiers() { return std::clamp(std::thread::hardware_concurrency() / 2, 2U, 8U); }

/// Returns a chain that was never stored before.
std::vector<digest> fresh_chain(uint64_t count) {
  return piece_digests(digest::from(random_boot_id().bytes), count);
}

outcome<std::unique_ptr<object_client>> open_client(const daemon_options& daemon, uint64_t object_bytes,
                                                    uint64_t objects, load_mode mode) {
  auto connected = connect(daemon, "terrace bench");
  if (!connected)
    return tl::unexpected(connected.error());
  client::space_spec space = file_space(object_bytes);
  space.model = "terrace-bench";
  return object_client::open(
      std::move(*connected),
      {.space = space, .region_bytes = objects * object_bytes, .commit = true, .mode = mode});
}

/// Submits `count` requests, at most `depth` at once, and waits for all of them.
template <class Result, class Submit>
outcome<void> keep_in_flight(object_client& client, const char* doing, uint64_t count, uint64_t depth,
                             Submit submit) {
  std::vector<client::ticket<Result>> tickets(depth);
  auto finish = [&](client::ticket<Result>& ticket) -> outcome<void> {
    if (!ticket)
      return {};
    if (auto answer = ticket.wait(); !answer)
      return request_failed(client.daemon(), doing, answer.error());
    return {};
  };
  for (uint64_t i = 0; i < count; ++i) {
    auto& ticket = tickets[i % depth];
    if (auto done = finish(ticket); !done)
      return done;
    auto submitted = submit(i);
    if (!submitted)
      return request_failed(client.daemon(), doing, submitted.error());
    ticket = std::move(*submitted);
  }
  for (uint64_t i = 0; i < depth; ++i)
    if (auto done = finish(tickets[(count + i) % depth]); !done)
      return done;
  return {};
}

outcome<double> measure_store(object_client& client, const std::vector<digest>& chain, uint64_t depth) {
  for (size_t i = 0; i < chain.size(); ++i)
    fill_content(client.buffer().subspan(i * client.object_bytes(), client.object_bytes()), chain[i]);
  auto begin = steady::now();
  auto done = keep_in_flight<client::store_result>(client, "storing", chain.size(), depth, [&](uint64_t i) {
    auto pieces = client.runs(i, 1);
    client::store_request request;
    request.in = client.space();
    request.what = client::prefix::of_digests(std::span(chain).first(i + 1));
    request.range = {static_cast<uint32_t>(i), 1};
    request.region = &client.region();
    request.runs = pieces;
    return client.daemon().async().store(request);
  });
  if (!done)
    return tl::unexpected(done.error());
  return rate(chain.size() * client.object_bytes(), begin);
}

outcome<double> measure_daemon_load(object_client& client, size_t objects, uint64_t depth) {
  auto begin = steady::now();
  auto done = keep_in_flight<client::load_result>(client, "loading", objects, depth, [&](uint64_t i) {
    auto pieces = client.runs(i, 1);
    client::load_request request;
    request.in = client.space();
    request.lease = client.held().id();
    request.range = {static_cast<uint32_t>(i), 1};
    request.region = &client.region();
    request.runs = pieces;
    return client.daemon().async().load(request);
  });
  if (!done)
    return tl::unexpected(done.error());
  return rate(objects * client.object_bytes(), begin);
}

/// Measures the second of two passes: the first one maps the segments and touches their pages.
outcome<double> measure_mapped_load(object_client& client, size_t objects) {
  double last = 0;
  for (int pass = 0; pass < 2; ++pass) {
    auto begin = steady::now();
    for (size_t i = 0; i < objects; ++i) {
      std::span<uint8_t> into(reinterpret_cast<uint8_t*>(client.buffer().data()) + i * client.object_bytes(),
                              client.object_bytes());
      auto bytes =
          client.daemon().load_under_lease(client.held(), {static_cast<uint32_t>(i), 1}, std::span(&into, 1));
      if (!bytes)
        return request_failed(client.daemon(), "loading under the lease", bytes.error());
    }
    last = rate(objects * client.object_bytes(), begin);
  }
  return last;
}

uint64_t count_wrong(object_client& client, const std::vector<digest>& chain) {
  uint64_t wrong = 0;
  for (size_t i = 0; i < chain.size(); ++i)
    wrong += count_wrong_bytes(client.buffer().subspan(i * client.object_bytes(), client.object_bytes()),
                               chain[i]);
  return wrong;
}

/// Each object goes to whichever thread is free, as with the daemon's copiers.
double measure_memcpy(std::span<std::byte> to, std::span<const std::byte> from, uint64_t object_bytes,
                      uint64_t threads) {
  std::atomic<uint64_t> next = 0;
  auto copy = [&] {
    for (uint64_t at; (at = next.fetch_add(object_bytes)) < from.size();)
      std::memcpy(to.data() + at, from.data() + at, object_bytes);
  };
  auto begin = steady::now();
  {
    std::vector<std::jthread> others;
    for (uint64_t i = 1; i < threads; ++i)
      others.emplace_back(copy);
    copy();
  }
  return rate(from.size(), begin);
}

double median(std::vector<double> rates) {
  auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

/// The rates of all rounds.
struct round_rates {
  std::vector<double> stores, daemon_loads, mapped_loads, memcpys, memcpys_alone;
};

outcome<percentiles> measure_lookup(const daemon_options& daemon, const measure_options& options) {
  auto client = open_client(daemon, file_object_bytes_least, options.digests, load_mode::daemon);
  if (!client)
    return tl::unexpected(client.error());
  std::vector<digest> chain = fresh_chain(options.digests);
  if (auto stored = (*client)->store(chain, chain.size()); !stored)
    return request_failed((*client)->daemon(), "storing what is looked up", stored.error());
  client::lookup_request request;
  request.in = (*client)->space();
  request.what = client::prefix::of_digests(chain);
  latency_recorder latencies;
  for (uint64_t i = 0; i < options.lookups; ++i) {
    auto begin = steady::now();
    auto found = (*client)->daemon().lookup(request);
    auto took = std::chrono::nanoseconds(steady::now() - begin).count();
    if (!found)
      return request_failed((*client)->daemon(), "lookup", found.error());
    if (found->found_chunks != chain.size())
      return failed(
          fmt::format("lookup: expected all {} chunks just stored, found {}; the daemon is too full to be "
                      "measured",
                      chain.size(), found->found_chunks));
    latencies.add(static_cast<uint64_t>(took));
  }
  return latencies.summary();
}

/// Each round uses a chain of its own. The limits are measured in the same round, because a machine's speed
/// changes over time.
outcome<void> measure_round(object_client& client, const measure_options& options, std::span<std::byte> aside,
                            round_rates& rates, measured& into) {
  std::vector<digest> chain = fresh_chain(options.objects);
  auto store = measure_store(client, chain, options.depth);
  if (!store)
    return tl::unexpected(store.error());
  rates.stores.push_back(*store);
  auto found = client.lookup(chain);
  if (!found)
    return request_failed(client.daemon(), "lookup", found.error());
  if (found->size() != chain.size())
    return failed(fmt::format(
        "bench: expected the {} objects just stored, found {}: memory is full of objects that its "
        "policy prefers; measure a daemon without other load, or use fewer --objects",
        chain.size(), found->size()));
  auto measure_load = [&](auto&& load, std::vector<double>& all) -> outcome<void> {
    std::memset(client.buffer().data(), 0, client.buffer().size());
    outcome<double> loaded = load();
    if (!loaded)
      return tl::unexpected(loaded.error());
    all.push_back(*loaded);
    into.wrong_bytes += count_wrong(client, chain);
    return {};
  };
  if (auto done = measure_load([&] { return measure_daemon_load(client, chain.size(), options.depth); },
                               rates.daemon_loads);
      !done)
    return done;
  if (client.mapped())
    if (auto done =
            measure_load([&] { return measure_mapped_load(client, chain.size()); }, rates.mapped_loads);
        !done)
      return done;
  rates.memcpys.push_back(measure_memcpy(aside, client.buffer(), options.object_bytes, into.memcpy_threads));
  rates.memcpys_alone.push_back(measure_memcpy(aside, client.buffer(), options.object_bytes, 1));
  return {};
}

outcome<void> measure_bandwidth(const daemon_options& daemon, const measure_options& options,
                                measured& into) {
  // Allocated before there is a region, so that nothing delays the region's first store.
  auto aside = client::region::create("terrace-bench", options.objects * options.object_bytes);
  if (!aside)
    return failed("making memory to copy to", aside.error());
  (void) aside->commit(); // if memory cannot be committed, pages come with the first copy
  auto opened = open_client(daemon, options.object_bytes, options.objects, load_mode::automatic);
  if (!opened)
    return tl::unexpected(opened.error());
  object_client& client = **opened;
  into.memcpy_threads = options.copiers != 0 ? options.copiers : default_copiers();
  round_rates rates;
  for (uint64_t i = 0; i < options.rounds; ++i)
    if (auto done = measure_round(client, options, std::as_writable_bytes(aside->bytes()), rates, into);
        !done)
      return done;
  into.first_store_bytes_per_second = rates.stores.front();
  if (rates.stores.size() > 1)
    rates.stores.erase(rates.stores.begin());
  into.store_bytes_per_second = median(rates.stores);
  into.daemon_load_bytes_per_second = median(rates.daemon_loads);
  if (!rates.mapped_loads.empty())
    into.mapped_load_bytes_per_second = median(rates.mapped_loads);
  into.memcpy_bytes_per_second = median(rates.memcpys);
  into.memcpy_one_thread_bytes_per_second = median(rates.memcpys_alone);
  return {};
}

} // namespace

outcome<measured> measure_daemon(const daemon_options& daemon, const measure_options& options) {
  measured all;
  auto lookup = measure_lookup(daemon, options);
  if (!lookup)
    return tl::unexpected(lookup.error());
  all.lookup_ns = *lookup;
  if (auto done = measure_bandwidth(daemon, options, all); !done)
    return tl::unexpected(done.error());
  return all;
}

} // namespace terrace::cli
