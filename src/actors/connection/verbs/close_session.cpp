// close_session: a conversation has ended. A turn in progress is not affected.
#include "actors/connection/session_prefixes.hpp"
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

void close_session(connection& client, const connection::request& what, const wire::CloseSession& asked,
                   protocol::descriptor_list&) {
  client.ask(what, client.group().group, close_session_request{to_session_id(asked.session())},
             "the trust group's actor has ended", [&client, what](const close_session_answer& answer) {
               auto tell = [&client, what, closed = answer.closed] {
                 client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
                   return wire::CreateCloseSessionAnswer(body, closed);
                 });
               };
               if (answer.held)
                 client.resume_after_lease_ends(what, tell); // what it held can be evicted then
               else
                 tell();
             });
}

} // namespace terrace::actors::verbs
