// await_lookup: what another client's lookup found, and a share of its lease.
#include "actors/connection/verbs.hpp"
#include "actors/transfer/lookup_answers.hpp"

namespace terrace::actors::verbs {

namespace {

void share(connection& client, const connection::request& what, const lookup_outcome& found) {
  if (!what.context->live()) { // nobody would give the lease back
    client.refuse(what, {what.context->ended.load(), "the wait for a lookup ended"});
    return;
  }
  lease_ptr held = found.held.lock();
  if (found.leased && !held) {
    client.refuse(what, {errc::gone, "the lookup was answered, and its lease has ended since"});
    return;
  }
  if (held && !client.holds(held->id)) {
    if (!client.may_lease(what))
      return;
    if (!client.reads(what, held, {}, {})) // from now on its end is the end of its last holder
      return;
  }
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    auto answer = write_lookup_answer(body, found.plan, held ? held->id : lease_id{});
    return wire::CreateAwaitLookupAnswer(body, answer, found.in->spec.chunk_tokens);
  });
}

} // namespace

void await_lookup(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* request = client.parse<wire::AwaitLookup>(frame);
  if (request == nullptr)
    return;
  client.set_deadline(what, request->deadline_ms());
  client.self
      ->request(client.group().group, caf::infinite,
                await_lookup_request{protocol::to_lookup_id(request->lookup_id()), what.context})
      .then(
          [&client, what](const await_lookup_answer& answer) {
            if (answer.failure.code != errc::ok)
              client.refuse(what, answer.failure);
            else
              share(client, what, *answer.found);
          },
          [&client, what](const caf::error&) {
            client.refuse(what, {errc::internal, "the trust group's actor has ended"});
          });
}

} // namespace terrace::actors::verbs
