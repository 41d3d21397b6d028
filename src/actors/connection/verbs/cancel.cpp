// cancel: ends a request of this connection early, or a lookup by its id.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void cancel(connection& client, const connection::request& what, const wire::Cancel& asked,
            protocol::descriptor_list&) {
  auto tell = [&client, what](bool found) {
    client.reply(what,
                 [&](flatbuffers::FlatBufferBuilder& body) { return wire::CreateCancelAnswer(body, found); });
  };
  if (asked.lookup_id() == nullptr) {
    tell(asked.request() != what.id && client.cancel(asked.request(), errc::cancelled));
    return;
  }
  client.ask(what, client.group().group, cancel_lookup_request{protocol::to_lookup_id(asked.lookup_id())},
             "the trust group's actor has ended",
             [tell](const cancel_lookup_answer& answer) { tell(answer.found); });
}

} // namespace terrace::actors::verbs
