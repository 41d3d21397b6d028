// reserve: staging memory for chunks that the client writes itself; `commit` publishes them with one copy.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/run_transfer.hpp"

namespace terrace::actors::verbs {

namespace {

constexpr size_t reserved_objects_max = 16'384; ///< of one request
constexpr size_t probed_objects = 1'024;        ///< at a time
static_assert(probed_objects % 64 == 0);

/// Reserves space for the objects of the range that are not in host memory.
void reserve_absent(connection& client, const connection::request& what, const client_space& in,
                    const batch_ptr& all, size_t per_chunk, const object_bitmap& present) {
  if (!what.context
           ->live()) { // it may have been for a client that has gone, whose staging memory is released
    client.refuse(what, {what.context->ended.load(), "the request ended before space was reserved"});
    return;
  }
  auto memory = client.staging_memory();
  if (!client.ok(what, memory))
    return;
  chunks_to_write to_write = absent_chunks(*all, per_chunk, present);
  const batch_ptr& absent = to_write.objects;
  const std::vector<bool>& wanted = to_write.wanted;
  staged reservation;
  reservation.in = in.what;
  reservation.objects = absent;
  reservation.objects_per_chunk = per_chunk;
  reservation.present_objects = all->size() - absent->size();
  auto id = (*memory)->reserve(std::move(reservation), absent->payload_bytes);
  if (!client.ok(what, id))
    return;
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

/// Looks for the objects in host memory, some at a time.
struct searching {
  client_space_ptr in;
  batch_ptr objects;
  size_t per_chunk = 1;
  object_bitmap present;
  size_t next = 0;
};

void search_on(connection& client, const connection::request& what,
               const std::shared_ptr<searching>& search) {
  if (search->next >= search->objects->size()) {
    reserve_absent(client, what, *search->in, search->objects, search->per_chunk, search->present);
    return;
  }
  probe_request probe{search->objects, false, false, {search->next, probed_objects}};
  client.ask(what, client.group().host, std::move(probe), "the host tier has ended",
             [&client, what, search](const probe_answer& found_now) {
               search->present.merge(search->next, found_now.present);
               search->next += probed_objects;
               search_on(client, what, search);
             });
}

} // namespace

void reserve(connection& client, const connection::request& what, const wire::Reserve& asked,
             protocol::descriptor_list&) {
  client.take_terms(what, asked);
  if (!client.may_map(what, "store with a region"))
    return;
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  with_chunks(client, what, *in, *asked.prefix(),
              [&client, what, in, &asked](chunk_prefix prefix, const keep_alive& body) {
                auto scope = scope_of(client, what, asked, in->what->spec, prefix.chunks.size());
                if (!scope)
                  return;
                size_t per_chunk = scope->pools.size();
                if (size_t objects = scope->range.count * per_chunk; objects > reserved_objects_max) {
                  client.refuse(what,
                                {errc::bad_request, std::to_string(objects) +
                                                        " objects were asked for: expected at most " +
                                                        std::to_string(reserved_objects_max) +
                                                        " in a reservation; reserve fewer chunks at a time"});
                  return;
                }
                auto whole = std::make_shared<const chunk_prefix>(std::move(prefix));
                scope_subject of{in->what, {whole, &whole->chunks}, whole->parent, *scope, in->rank};
                with_objects(client, what, std::move(of), body,
                             [&client, what, in, per_chunk](const batch_ptr& objects) {
                               auto search = std::make_shared<searching>(
                                   searching{in, objects, per_chunk, object_bitmap(objects->size()), 0});
                               search_on(client, what, search);
                             });
              });
}

} // namespace terrace::actors::verbs
