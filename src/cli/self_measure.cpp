#include "cli/self_measure.hpp"

#include "base/random_id.hpp"
#include "cli/content.hpp"
#include "cli/file_object.hpp"
#include "cli/object_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace terrace::cli {

namespace {

using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point begin) {
  return std::chrono::duration<double>(steady::now() - begin).count();
}

double rate(uint64_t bytes, steady::time_point begin) {
  return static_cast<double>(bytes) / seconds_since(begin);
}

/// A chain that was never stored before.
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
    if (auto answer = client.daemon().wait(ticket); !answer)
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
    return client.daemon().submit_store(request);
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
    return client.daemon().submit_load(request);
  });
  if (!done)
    return tl::unexpected(done.error());
  return rate(objects * client.object_bytes(), begin);
}

outcome<double> measure_mapped_load(object_client& client, size_t objects) {
  double best = 0;
  for (int pass = 0; pass < 2; ++pass) { // the first maps the segments and touches their pages
    auto begin = steady::now();
    for (size_t i = 0; i < objects; ++i) {
      std::span<uint8_t> into(reinterpret_cast<uint8_t*>(client.buffer().data()) + i * client.object_bytes(),
                              client.object_bytes());
      auto bytes =
          client.daemon().load_under_lease(client.held(), {static_cast<uint32_t>(i), 1}, std::span(&into, 1));
      if (!bytes)
        return request_failed(client.daemon(), "loading under the lease", bytes.error());
    }
    best = std::max(best, rate(objects * client.object_bytes(), begin));
  }
  return best;
}

uint64_t count_wrong(object_client& client, const std::vector<digest>& chain) {
  uint64_t wrong = 0;
  for (size_t i = 0; i < chain.size(); ++i)
    wrong += count_wrong_bytes(client.buffer().subspan(i * client.object_bytes(), client.object_bytes()),
                               chain[i]);
  return wrong;
}

double measure_memcpy(std::span<std::byte> memory) {
  size_t half = memory.size() / 2;
  double best = 0;
  for (int pass = 0; pass < 2; ++pass) {
    auto begin = steady::now();
    std::memcpy(memory.data(), memory.data() + half, half);
    best = std::max(best, rate(half, begin));
  }
  return best;
}

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

outcome<void> measure_bandwidth(const daemon_options& daemon, const measure_options& options,
                                measured& into) {
  auto opened = open_client(daemon, options.object_bytes, options.objects, load_mode::automatic);
  if (!opened)
    return tl::unexpected(opened.error());
  object_client& client = **opened;
  std::vector<digest> chain = fresh_chain(options.objects);
  auto store = measure_store(client, chain, options.depth);
  if (!store)
    return tl::unexpected(store.error());
  into.store_bytes_per_second = *store;
  auto found = client.lookup(chain);
  if (!found)
    return request_failed(client.daemon(), "lookup", found.error());
  if (found->size() != chain.size())
    return failed(
        fmt::format("bench: expected the {} objects just stored, found {}; use fewer --objects or smaller "
                    "--object-bytes",
                    chain.size(), found->size()));
  std::memset(client.buffer().data(), 0, client.buffer().size());
  auto load = measure_daemon_load(client, chain.size(), options.depth);
  if (!load)
    return tl::unexpected(load.error());
  into.daemon_load_bytes_per_second = *load;
  into.wrong_bytes += count_wrong(client, chain);
  if (client.mapped()) {
    std::memset(client.buffer().data(), 0, client.buffer().size());
    auto mapped = measure_mapped_load(client, chain.size());
    if (!mapped)
      return tl::unexpected(mapped.error());
    into.mapped_load_bytes_per_second = *mapped;
    into.wrong_bytes += count_wrong(client, chain);
  }
  into.memcpy_bytes_per_second = measure_memcpy(client.buffer());
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
