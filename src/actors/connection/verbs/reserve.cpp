// reserve: staging memory for chunks that the client writes itself; `commit` publishes them with one copy.
#include "actors/connection/verbs.hpp"
#include "actors/transfer/transfer_actors.hpp"
#include "connection/chunk_reservation.hpp"

namespace terrace::actors::verbs {

namespace {

/// Which of the objects host memory has.
task<object_bitmap> present(client_request& request, batch_ptr objects) {
  presence_search search(std::move(objects));
  const auto& host = request.client.group().host;
  while (auto next = search.next()) {
    probe_request probe = std::move(*next);
    auto found = co_await request.ask<probe_answer>(host, std::move(probe), "the host tier has ended");
    search.add(found);
  }
  co_return search.present();
}

} // namespace

task<> reserve(client_request& request, const wire::Reserve& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  co_await request.may_map("store with a region");
  auto space = co_await request.space_of(asked);
  const wire::Prefix& sent = *asked.prefix();
  auto prefix = co_await stored_chunks(request, *space, sent);
  auto scope = terrace::prefix_scope_of(asked, space->space->spec, prefix.chunks.size());
  co_await request.valid(scope);
  auto allowed = may_reserve(*scope);
  co_await request.valid(allowed);
  auto whole = std::make_shared<const chunk_prefix>(std::move(prefix));
  scope_subject subject{space->space, {whole, &whole->chunks}, whole->parent, *scope, space->rank};
  auto objects = co_await transfer_objects(request, std::move(subject));
  bool nothing = client.stores_nothing(asked.options(), *space);
  object_bitmap there;
  if (!nothing) {
    there = co_await present(request, objects);
  }
  if (!request.context
           ->live()) { // it may have been for a client that has gone, whose staging memory is released
    request.refuse({request.context->ended.load(), "the request ended before space was reserved"});
    co_return;
  }
  auto memory = client.staging_memory();
  co_await request.valid(memory);
  staging& into = **memory;
  size_t per_chunk = scope->pools.size();
  auto reserved = nothing ? reserve_nothing(into, space->space, objects, per_chunk)
                          : reserve_absent(into, space->space, objects, per_chunk, there);
  co_await request.valid(reserved);
  client.show();
  request.reply(
      [&](flatbuffers::FlatBufferBuilder& body) { return write_reserve_answer(body, *reserved, into); });
}

// abort: releases reserved staging memory.

task<> abort(client_request& request, const wire::Abort& asked, protocol::descriptor_list&) {
  auto reservation = take_reservation(request, asked.reservation());
  if (!reservation)
    co_return;
  put_back(request.client, *reservation);
  request.reply(wire::CreateAbortAnswer);
}

// commit: publishes the chunks that the client has written into staging memory, with one copy.

task<> commit(client_request& request, const wire::Commit& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto reservation = take_reservation(request, asked.reservation());
  if (!reservation)
    co_return;
  staging& memory = *client.holdings().present_staging();
  std::vector<region_run> runs;
  for (size_t i = 0; i < reservation->extents.size(); ++i)
    runs.push_back({reservation->extents[i].offset, reservation->objects->payload_bytes[i], 0, 1});
  auto checked = scatter_gather::make(runs, {}, reservation->objects->payload_bytes, memory.memory().size());
  if (!checked) {
    put_back(client, *reservation);
    request.refuse({errc::internal, checked.error().text});
    co_return;
  }
  store_job job;
  job.group = client.group_handle();
  job.space = reservation->space;
  job.objects = reservation->objects;
  job.objects_per_chunk = reservation->objects_per_chunk;
  job.runs = std::make_shared<const scatter_gather>(std::move(*checked));
  job.source = memory.source();
  job.context = request.context;
  auto& idle = request.actor.idle().stores;
  auto done = co_await run_job<store_result>(request, idle, spawn_store, std::move(job));
  put_back(client, *reservation);
  co_await request.valid(done.failure);
  size_t present = reservation->present_objects / reservation->objects_per_chunk + done.present_chunks;
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateCommitAnswer(body, static_cast<uint32_t>(done.stored_chunks),
                                    static_cast<uint32_t>(present), done.bytes);
  });
}

} // namespace terrace::actors::verbs
