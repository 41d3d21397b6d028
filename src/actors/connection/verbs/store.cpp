// store: copies chunks from a region.
#include "actors/connection/prefixes.hpp"
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

void store_objects(connection& client, const connection::request& what, const wire::Store& asked,
                   const std::shared_ptr<const client_region>& region, const client_space& in,
                   const batch_ptr& objects, size_t per_chunk) {
  auto runs = runs_of(*asked.runs(), asked.runs_per_object(), *objects, region->size());
  if (!runs) {
    client.refuse(what, runs.error());
    return;
  }
  store_job job;
  job.group = client.group_handle();
  job.in = in.what;
  job.objects = objects;
  job.objects_per_chunk = per_chunk;
  job.runs = std::move(*runs);
  job.source = outside(region);
  job.context = what.context;
  start(client, what, std::move(job), in.probe);
}

} // namespace

void store(connection& client, const connection::request& what, const wire::Store& asked,
           protocol::descriptor_list&) {
  connection::take_options(what, asked.options());
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  auto region = client.find_region(what, asked.region());
  if (!region)
    return;
  client.set_deadline(what, asked.deadline_ms());
  with_chunks(client, what, *in, *asked.prefix(),
              [&client, what, &asked, region, in](chunk_prefix prefix, const keep_alive& body) {
                auto scope = scope_of(client, what, asked, in->what->spec, prefix.chunks.size());
                if (!scope)
                  return;
                auto whole = std::make_shared<const chunk_prefix>(std::move(prefix));
                scope_subject of{in->what, {whole, &whole->chunks}, whole->parent, *scope, in->rank};
                with_objects(client, what, std::move(of), body,
                             [&client, what, &asked, region, in,
                              per_chunk = scope->pools.size()](const batch_ptr& objects) {
                               store_objects(client, what, asked, region, *in, objects, per_chunk);
                             });
              });
}

} // namespace terrace::actors::verbs
