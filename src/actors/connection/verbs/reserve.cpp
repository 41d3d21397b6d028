// reserve: staging memory for chunks that the client writes itself; `commit` publishes them with one copy.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/run_transfer.hpp"
#include "connection/chunk_reservation.hpp"
#include "connection/presence_search.hpp"

namespace terrace::actors::verbs {

namespace {

/// Staging memory for what `reserve` takes of it: a function `(staging&) -> result<chunk_reservation>`.
template <class F>
void answer_reserve(connection& client, const connection::request& what, F reserve) {
  if (!what.context
           ->live()) { // it may have been for a client that has gone, whose staging memory is released
    client.refuse(what, {what.context->ended.load(), "the request ended before space was reserved"});
    return;
  }
  auto memory = client.staging_memory();
  if (!client.ok(what, memory))
    return;
  auto reserved = reserve(**memory);
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
    answer_reserve(client, what, [&](staging& memory) {
      return reserve_absent(memory, in->what, search->objects(), per_chunk, search->present());
    });
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
  with_stored_chunks(
      client, what, *in, *asked.prefix(),
      [&client, what, in, &asked](chunk_prefix prefix, const keep_alive& body) {
        auto scope = prefix_scope_of(client, what, asked, in->what->spec, prefix.chunks.size());
        if (!scope)
          return;
        size_t per_chunk = scope->pools.size();
        if (!client.ok(what, may_reserve(*scope)))
          return;
        auto whole = std::make_shared<const chunk_prefix>(std::move(prefix));
        scope_subject of{in->what, {whole, &whole->chunks}, whole->parent, *scope, in->rank};
        bool nothing = client.stores_nothing(asked.options(), *in);
        with_objects(client, what, std::move(of), body,
                     [&client, what, in, per_chunk, nothing](const batch_ptr& objects) {
                       if (nothing) {
                         answer_reserve(client, what, [&](staging& memory) {
                           return reserve_nothing(memory, in->what, objects, per_chunk);
                         });
                         return;
                       }
                       search_on(client, what, in, per_chunk, std::make_shared<presence_search>(objects));
                     });
      });
}

} // namespace terrace::actors::verbs
