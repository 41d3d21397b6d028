// store: copies chunks from a region.
#include "actors/connection/verbs.hpp"
#include "actors/transfer/transfer_actors.hpp"
#include "connection/counter_waits.hpp"

#include <optional>

namespace terrace::actors::verbs {

namespace {

/// What a store out of a device's memory waits for.
struct awaited_counter {
  client_counter counter;
  uint32_t value = 0;
};

/// Nullopt: the store waits for nothing.
result<std::optional<awaited_counter>> counter_of(connected_client& client, const wire::Store& asked,
                                                  const client_region& region) {
  if (asked.after() == nullptr)
    return std::nullopt;
  if (!region.device())
    return fail(errc::bad_request, "after: expected a region in device memory; a client that stores from "
                                   "host memory writes it before its request");
  auto counters = client.holdings().regions().registered(asked.after()->region());
  if (!counters)
    return tl::unexpected(counters.error());
  auto counter = client_counter::in(std::move(*counters), asked.after()->offset());
  if (!counter)
    return tl::unexpected(counter.error());
  return awaited_counter{std::move(*counter), asked.after()->value()};
}

} // namespace

task<> store(client_request& request, const wire::Store& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto space = co_await request.space_of(asked);
  auto region = co_await request.region_of(asked);
  auto after = counter_of(client, asked, *region);
  co_await request.valid(after);
  if (client.stores_nothing(asked.options(), *space)) {
    request.reply(
        [](flatbuffers::FlatBufferBuilder& body) { return wire::CreateStoreAnswer(body, 0, 0, 0); });
    co_return;
  }
  auto part = co_await transfer_objects(request, space, asked, true);
  run_lists sent{asked.runs(), asked.runs_per_object()};
  uint64_t region_bytes = region->size();
  auto runs = co_await checked_runs(request, sent, part.objects, region_bytes);
  if (runs->skips()) {
    request.refuse({errc::bad_request,
                    "expected runs with places for all bytes of the objects: only a load skips some"});
    co_return;
  }
  store_job job;
  job.group = client.group_handle();
  job.space = space->space;
  job.objects = part.objects;
  job.objects_per_chunk = part.scope.pools.size();
  job.runs = std::move(runs);
  job.source = outside(region);
  job.context = request.context;
  if (*after) { // before the store takes any memory
    const awaited_counter& waited = **after;
    const auto& device = region->device();
    co_await request.counted(waited.counter, waited.value, device);
  }
  auto& idle = request.actor.idle().stores;
  auto done = co_await run_job<store_result>(request, idle, spawn_store, std::move(job));
  space->probe->stored(done.bytes);
  co_await request.valid(done.failure);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateStoreAnswer(body, static_cast<uint32_t>(done.stored_chunks),
                                   static_cast<uint32_t>(done.present_chunks), done.bytes);
  });
}

} // namespace terrace::actors::verbs
