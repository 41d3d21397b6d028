// reserve: staging memory for chunks that the client writes itself; `commit` publishes them with one copy.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/run_transfer.hpp"
#include "connection/chunk_reservation.hpp"
#include "connection/presence_search.hpp"

namespace terrace::actors::verbs {

namespace {

/// Reserves space for the chunks that are not in host memory.
void reserve_space(connection& client, const connection::request& what, const space_ptr& in, size_t per_chunk,
                   const presence_search& search) {
  if (!what.context
           ->live()) { // it may have been for a client that has gone, whose staging memory is released
    client.refuse(what, {what.context->ended.load(), "the request ended before space was reserved"});
    return;
  }
  auto memory = client.staging_memory();
  if (!client.ok(what, memory))
    return;
  auto reserved = reserve_absent(**memory, in, search.objects(), per_chunk, search.present());
  if (!client.ok(what, reserved))
    return;
  client.show();
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    return write_reserve_answer(body, *reserved, **memory);
  });
}

void search_on(connection& client, const connection::request& what, const client_space_ptr& in,
               size_t per_chunk, const std::shared_ptr<presence_search>& search) {
  auto probe = search->next();
  if (!probe) {
    reserve_space(client, what, in->what, per_chunk, *search);
    return;
  }
  client.ask(what, client.group().host, std::move(*probe), "the host tier has ended",
             [&client, what, in, per_chunk, search](const probe_answer& found) {
               search->take(found);
               search_on(client, what, in, per_chunk, search);
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
                if (!client.ok(what, may_reserve(*scope)))
                  return;
                auto whole = std::make_shared<const chunk_prefix>(std::move(prefix));
                scope_subject of{in->what, {whole, &whole->chunks}, whole->parent, *scope, in->rank};
                with_objects(client, what, std::move(of), body,
                             [&client, what, in, per_chunk](const batch_ptr& objects) {
                               search_on(client, what, in, per_chunk,
                                         std::make_shared<presence_search>(objects));
                             });
              });
}

} // namespace terrace::actors::verbs
