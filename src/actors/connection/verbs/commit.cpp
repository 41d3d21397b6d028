// commit: publishes the chunks that the client has written into staging memory, with one copy.
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/reservations.hpp"
#include "actors/transfer/store_actor.hpp"

namespace terrace::actors::verbs {

task<> commit(client_request& request, const wire::Commit& asked, protocol::descriptor_list&) {
  request.take_terms(asked);
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
  job.in = reservation->in;
  job.objects = reservation->objects;
  job.objects_per_chunk = reservation->objects_per_chunk;
  job.runs = std::make_shared<const scatter_gather>(std::move(*checked));
  job.source = memory.source();
  job.context = request.context;
  auto& idle = request.actor.idle().stores;
  auto done = co_await request.run<store_result>(idle, spawn_store, std::move(job));
  put_back(client, *reservation);
  co_await request.valid(done.failure);
  size_t present = reservation->present_objects / reservation->objects_per_chunk + done.present_chunks;
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateCommitAnswer(body, static_cast<uint32_t>(done.stored_chunks),
                                    static_cast<uint32_t>(present), done.bytes);
  });
}

} // namespace terrace::actors::verbs
