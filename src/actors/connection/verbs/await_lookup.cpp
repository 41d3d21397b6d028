// await_lookup: the result of another client's lookup, and a share in its lease.
#include "actors/connection/verbs.hpp"
#include "connection/lookup_answers.hpp"

namespace terrace::actors::verbs {

namespace {

void share(connection& client, const connection::request& what, const lookup_outcome& found) {
  if (!what.context->live()) { // the lease would never be released
    client.refuse(what, {what.context->ended.load(), "the wait for a lookup ended"});
    return;
  }
  lease_ptr held = found.held.lock();
  if (found.leased && (!held || held->revoked.is_set())) {
    client.refuse(what, {errc::gone, "the lookup was answered, and its lease has ended since"});
    return;
  }
  if (held && !client.holds(held->id)) {
    if (!client.may_lease(what))
      return;
    lease_reading nothing; // but from now on the lease ends with its last holder
    nothing.from = held;
    if (!client.read_some(what, nothing))
      return;
  }
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    auto answer = write_lookup_answer(
        body, found.plan, found.recompute_chunks, held ? held->id : lease_id{}, {}, {},
        {found.cursors, found.prompt ? std::span(found.prompt->logits) : std::span<const uint8_t>()});
    return wire::CreateAwaitLookupAnswer(body, answer, found.chunk_tokens);
  });
}

} // namespace

void await_lookup(connection& client, const connection::request& what, const wire::AwaitLookup& asked,
                  protocol::descriptor_list&) {
  client.take_terms(what, asked);
  client.ask(what, client.group().group,
             await_lookup_request{protocol::to_lookup_id(asked.lookup_id()), what.context},
             "the trust group's actor has ended", [&client, what](const await_lookup_answer& answer) {
               if (client.ok(what, answer.failure))
                 share(client, what, *answer.found);
             });
}

} // namespace terrace::actors::verbs
