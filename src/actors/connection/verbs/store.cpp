// store: copies chunks from a region.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/run_lists.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/run_transfer.hpp"
#include "actors/transfer/store_actor.hpp"

#include <optional>

namespace terrace::actors::verbs {

namespace {

void start(connection& client, const connection::request& what, store_job job,
           std::shared_ptr<metrics::space_probe> probe) {
  run_transfer<store_result>(client, what, client.idle_stores(), spawn_store, std::move(job),
                             [&client, what, probe](const store_result& done) {
                               probe->stored(done.bytes);
                               if (done.failure.code != errc::ok)
                                 return;
                               client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
                                 return wire::CreateStoreAnswer(
                                     body, static_cast<uint32_t>(done.stored_chunks),
                                     static_cast<uint32_t>(done.present_chunks), done.bytes);
                               });
                             });
}

/// What a store out of a device's memory waits for.
struct awaited_counter {
  client_counter counter;
  uint32_t value = 0;
};

/// False: it is wrong, and the request was refused.
bool take_counter(connection& client, const connection::request& what, const wire::Store& asked,
                  const client_region_ptr& region, std::optional<awaited_counter>& after) {
  if (asked.after() == nullptr)
    return true;
  if (!region->device()) {
    client.refuse(what,
                  {errc::bad_request, "after: expected a region in device memory; a client that stores from "
                                      "host memory writes it before its request"});
    return false;
  }
  auto counters = client.find_region(what, asked.after()->region());
  if (!counters)
    return false;
  auto counter = client_counter::in(std::move(counters), asked.after()->offset());
  if (!client.ok(what, counter))
    return false;
  after = {std::move(*counter), asked.after()->value()};
  return true;
}

void store_objects(connection& client, const connection::request& what, const run_lists& runs,
                   const std::shared_ptr<const client_region>& region, const client_space_ptr& in,
                   const batch_ptr& objects, size_t per_chunk, const std::optional<awaited_counter>& after) {
  with_runs(
      client, what, runs, objects, region->size(),
      [&client, what, region, in, objects, per_chunk, after](std::shared_ptr<const scatter_gather> checked) {
        if (checked->skips()) {
          client.refuse(what,
                        {errc::bad_request,
                         "expected runs with places for all bytes of the objects: only a load skips some"});
          return;
        }
        store_job job;
        job.group = client.group_handle();
        job.in = in->what;
        job.objects = objects;
        job.objects_per_chunk = per_chunk;
        job.runs = std::move(checked);
        job.source = outside(region);
        job.context = what.context;
        if (!after) {
          start(client, what, std::move(job), in->probe);
          return;
        }
        // Before the store takes any memory.
        client.when_counted(what, after->counter, after->value, region->device(),
                            [&client, what, job, probe = in->probe] { start(client, what, job, probe); });
      });
}

} // namespace

void store(connection& client, const connection::request& what, const wire::Store& asked,
           protocol::descriptor_list&) {
  client.take_terms(what, asked);
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  auto region = client.find_region(what, asked.region());
  if (!region)
    return;
  std::optional<awaited_counter> after;
  if (!take_counter(client, what, asked, region, after))
    return;
  if (client.stores_nothing(asked.options(), *in)) {
    client.reply(what,
                 [](flatbuffers::FlatBufferBuilder& body) { return wire::CreateStoreAnswer(body, 0, 0, 0); });
    return;
  }
  with_prefix_objects(
      client, what, in, asked, with_stored_chunks,
      [&client, what, region, in, after, runs = runs_of(client, *asked.runs(), asked.runs_per_object())](
          const chunk_prefix&, const transfer_scope& scope, const batch_ptr& objects) {
        store_objects(client, what, runs, region, in, objects, scope.pools.size(), after);
      });
}

} // namespace terrace::actors::verbs
