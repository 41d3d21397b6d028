// unpin: ends the pin of a prompt.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

namespace {

void end_pin(connection& client, const connection::request& what, const unpin_request& of) {
  client.ask(what, client.group().group, of, "the trust group's actor has ended",
             [&client, what](const unpin_answer& done) {
               auto tell = [&client, what, done] {
                 client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
                   return wire::CreateUnpinAnswer(body, done.pins, done.bytes);
                 });
               };
               client.resume_after_lease_ends(what, tell); // what was pinned can be evicted then
             });
}

} // namespace

void unpin(connection& client, const connection::request& what, const wire::Unpin& asked,
           protocol::descriptor_list&) {
  client.take_terms(what, asked);
  if (!client.may_govern(what, "a pin serves all clients of the trust group"))
    return;
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  with_chunks(client, what, *in, *asked.prefix(),
              [&client, what, in](const chunk_prefix& prefix, const keep_alive&) {
                if (prefix.chunks.empty())
                  client.refuse(what, {errc::bad_request, "expected a prompt of at least one whole chunk"});
                else
                  end_pin(client, what, {in->what->id, prefix.chunks.back()});
              });
}

} // namespace terrace::actors::verbs
