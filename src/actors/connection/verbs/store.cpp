// store: copies chunks from a region.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/run_lists.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/run_transfer.hpp"
#include "actors/transfer/store_actor.hpp"

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

void store_objects(connection& client, const connection::request& what, const run_lists& runs,
                   const std::shared_ptr<const client_region>& region, const client_space_ptr& in,
                   const batch_ptr& objects, size_t per_chunk) {
  with_runs(client, what, runs, objects, region->size(),
            [&client, what, region, in, objects, per_chunk](std::shared_ptr<const scatter_gather> checked) {
              store_job job;
              job.group = client.group_handle();
              job.in = in->what;
              job.objects = objects;
              job.objects_per_chunk = per_chunk;
              job.runs = std::move(checked);
              job.source = outside(region);
              job.context = what.context;
              start(client, what, std::move(job), in->probe);
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
  if (client.stores_nothing(asked.options(), *in)) {
    client.reply(what,
                 [](flatbuffers::FlatBufferBuilder& body) { return wire::CreateStoreAnswer(body, 0, 0, 0); });
    return;
  }
  with_prefix_objects(
      client, what, in, asked, with_stored_chunks,
      [&client, what, region, in, runs = runs_of(client, *asked.runs(), asked.runs_per_object())](
          const chunk_prefix&, const transfer_scope& scope, const batch_ptr& objects) {
        store_objects(client, what, runs, region, in, objects, scope.pools.size());
      });
}

} // namespace terrace::actors::verbs
