// reserve: staging memory for chunks that the client writes itself; `commit` publishes them with one copy.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/run_transfer.hpp"

namespace terrace::actors::verbs {

namespace {

/// Reserves space for the objects of the range that are not in host memory.
void reserve_absent(connection& client, const connection::request& what, const client_space& in,
                    const batch_ptr& all, size_t per_chunk, const object_bitmap& present) {
  auto memory = client.staging_memory();
  if (!memory) {
    client.refuse(what, memory.error());
    return;
  }
  auto [absent, wanted] = absent_chunks(*all, per_chunk, present);
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
    return wire::CreateReserveAnswer(body, *id, staging_segment, protocol::create_structs(body, locations));
  });
}

} // namespace

void reserve(connection& client, const connection::request& what, const wire::Reserve& asked,
             protocol::descriptor_list&) {
  if (client.group().isolated) {
    client.refuse(what, {errc::denied, "nothing is mapped in the isolated group " + client.group().name +
                                           "; use store with a region"});
    return;
  }
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  client.set_deadline(what, asked.deadline_ms());
  connection::take_options(what, asked.options());
  with_chunks(client, what, *in, *asked.prefix(), [&client, what, in, &asked](const chunk_prefix& prefix) {
    auto scope = scope_of(client, what, asked, in->what->spec, prefix.chunks.size());
    if (!scope)
      return;
    size_t per_chunk = scope->pools.size();
    auto objects = objects_of(*in->what, prefix.chunks, prefix.parent, *scope, in->rank);
    client.ask(what, client.group().host, probe_request{objects, false, false}, "the host tier has ended",
               [&client, what, in, objects, per_chunk](const probe_answer& found_now) {
                 reserve_absent(client, what, *in, objects, per_chunk, found_now.present);
               });
  });
}

} // namespace terrace::actors::verbs
