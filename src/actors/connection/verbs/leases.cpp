// release, cancel: the verbs that give something back.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void release(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* request = client.parse<wire::Release>(frame);
  if (request == nullptr)
    return;
  if (!client.release_lease(protocol::to_lease_id(request->lease()))) {
    client.refuse(what, {errc::gone, "this connection neither owns nor reads such a lease"});
    return;
  }
  client.reply(what, [](flatbuffers::FlatBufferBuilder& body) { return wire::CreateReleaseAnswer(body); });
}

void cancel(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* request = client.parse<wire::Cancel>(frame);
  if (request == nullptr)
    return;
  auto tell = [&client, what](bool found) {
    client.reply(what,
                 [&](flatbuffers::FlatBufferBuilder& body) { return wire::CreateCancelAnswer(body, found); });
  };
  if (request->lookup_id() == nullptr) {
    tell(request->request() != what.id && client.cancel(request->request(), errc::cancelled));
    return;
  }
  client.self
      ->request(client.group().group, caf::infinite,
                cancel_lookup_request{protocol::to_lookup_id(request->lookup_id())})
      .then([tell](const cancel_lookup_answer& answer) { tell(answer.found); },
            [&client, what](const caf::error&) {
              client.refuse(what, {errc::internal, "the trust group's actor has ended"});
            });
}

} // namespace terrace::actors::verbs
