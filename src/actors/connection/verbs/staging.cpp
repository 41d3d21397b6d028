// reserve, commit, abort: chunks that the client writes into staging memory itself, published by one copy.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/run_transfer.hpp"
#include "actors/transfer/store_actor.hpp"

namespace terrace::actors::verbs {

namespace {

/// Space for the objects of the range that are not in host memory yet.
void reserve_absent(connection& client, const connection::request& what, const client_space& in,
                    const batch_ptr& all, size_t per_chunk, const object_bitmap& present) {
  auto memory = client.staging_memory();
  if (!memory) {
    client.refuse(what, memory.error());
    return;
  }
  // A chunk is written whole or not at all, so that a commit's chunks are whole.
  auto absent = std::make_shared<object_batch>();
  absent->trailing = all->trailing;
  std::vector<bool> wanted(all->size());
  for (size_t c = 0; c < all->size(); c += per_chunk) {
    bool whole = true;
    for (size_t i = c; i < c + per_chunk; ++i)
      whole = whole && present.test(i);
    for (size_t i = c; i < c + per_chunk && !whole; ++i) {
      wanted[i] = true;
      absent->keys.push_back(all->keys[i]);
      absent->parents.push_back(all->parents[i]);
      absent->payload_bytes.push_back(all->payload_bytes[i]);
    }
  }
  staged reservation;
  reservation.in = in.what;
  reservation.objects = absent;
  reservation.objects_per_chunk = per_chunk;
  reservation.present_objects = all->size() - absent->size();
  auto id = (*memory)->reserve(std::move(reservation), absent->payload_bytes);
  if (!id) {
    client.refuse(what, id.error());
    return;
  }
  client.record()->reservations = static_cast<uint32_t>((*memory)->reservations());
  const auto& extents = (*memory)->find(*id)->extents;
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<wire::Location> locations;
    locations.reserve(all->size());
    size_t next = 0;
    for (size_t i = 0; i < all->size(); ++i)
      if (wanted[i])
        locations.emplace_back(extents[next++].offset, all->payload_bytes[i], staging_segment, 0);
      else
        locations.emplace_back(0, 0, staging_segment, 0);
    return wire::CreateReserveAnswer(body, *id, staging_segment, body.CreateVectorOfStructs(locations));
  });
}

/// Null: there is no such reservation, and the request was refused.
std::shared_ptr<staged> take(connection& client, const connection::request& what, uint64_t id) {
  auto memory = client.staging_memory();
  auto taken = memory ? (*memory)->take(id) : tl::unexpected(memory.error());
  if (taken)
    return *taken;
  client.refuse(what, taken.error());
  return nullptr;
}

/// Its memory can be reserved again.
void put_back(connection& client, const staged& reservation) {
  staging* memory = client.present_staging();
  if (memory == nullptr)
    return;
  memory->put_back(reservation);
  client.record()->reservations = static_cast<uint32_t>(memory->reservations());
}

} // namespace

void reserve(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* request = client.parse<wire::Reserve>(frame);
  if (request == nullptr)
    return;
  if (client.group().isolated) {
    client.refuse(what, {errc::denied, "nothing is mapped in the isolated group " + client.group().name +
                                           "; use store with a region"});
    return;
  }
  auto in = client.find_space(what, request->space());
  if (!in)
    return;
  client.set_deadline(what, request->deadline_ms());
  connection::set_inference(what, request->options());
  with_chunks(client, what, *in, *request->prefix(),
              [&client, what, in, request](const chunk_prefix& prefix) {
                auto scope = scope_of(client, what, *request, in->what->spec, prefix.chunks.size());
                if (!scope)
                  return;
                size_t per_chunk = scope->pools.size();
                auto objects = objects_of(*in->what, prefix.chunks, prefix.parent, *scope, in->rank);
                client.self->request(client.group().host, caf::infinite, probe_request{objects, false, false})
                    .then(
                        [&client, what, in, objects, per_chunk](const probe_answer& found_now) {
                          reserve_absent(client, what, *in, objects, per_chunk, found_now.present);
                        },
                        [&client, what](const caf::error&) {
                          client.refuse(what, {errc::internal, "the host tier has ended"});
                        });
              });
}

void commit(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* request = client.parse<wire::Commit>(frame);
  if (request == nullptr)
    return;
  auto reservation = take(client, what, request->reservation());
  if (!reservation)
    return;
  staging& memory = *client.present_staging();
  client.set_deadline(what, request->deadline_ms());
  connection::set_inference(what, request->options());
  std::vector<region_run> runs;
  for (size_t i = 0; i < reservation->extents.size(); ++i)
    runs.push_back({reservation->extents[i].offset, reservation->objects->payload_bytes[i], 0, 1});
  auto checked = scatter_gather::make(runs, {}, reservation->objects->payload_bytes, memory.memory().size());
  if (!checked) {
    put_back(client, *reservation);
    client.refuse(what, {errc::internal, checked.error().text});
    return;
  }
  store_job job;
  job.group = client.group_handle();
  job.in = reservation->in;
  job.objects = reservation->objects;
  job.objects_per_chunk = reservation->objects_per_chunk;
  job.runs = std::make_shared<const scatter_gather>(std::move(*checked));
  job.source = memory.source();
  job.context = what.context;
  run_transfer<store_result>(
      client, what, client.idle_stores(), spawn_store, std::move(job),
      [&client, what, reservation](const store_result& done) {
        put_back(client, *reservation);
        if (done.failure.code != errc::ok)
          return;
        size_t present = reservation->present_objects / reservation->objects_per_chunk + done.present_chunks;
        client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
          return wire::CreateCommitAnswer(body, static_cast<uint32_t>(done.stored_chunks),
                                          static_cast<uint32_t>(present), done.bytes);
        });
      });
}

void abort(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* request = client.parse<wire::Abort>(frame);
  if (request == nullptr)
    return;
  auto reservation = take(client, what, request->reservation());
  if (!reservation)
    return;
  put_back(client, *reservation);
  client.reply(what, [](flatbuffers::FlatBufferBuilder& body) { return wire::CreateAbortAnswer(body); });
}

} // namespace terrace::actors::verbs
