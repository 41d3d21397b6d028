// sessions: those of the client's trust group.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

namespace {

flatbuffers::Offset<wire::SessionStatus> write(flatbuffers::FlatBufferBuilder& body,
                                               const listed_session& listed) {
  const session_report& one = listed.what;
  auto id = body.CreateVector(one.id.bytes.data(), one.id.bytes.size());
  return wire::CreateSessionStatus(body, id, static_cast<uint64_t>(one.owner), static_cast<uint32_t>(one.in),
                                   one.keep, one.generation, one.lengths.protected_tokens(),
                                   one.lengths.committed_tokens(), one.lengths.allocated_tokens(), one.bytes,
                                   one.held ? wire::SessionMode::held : wire::SessionMode::tagged,
                                   listed.held_tokens, listed.held_bytes);
}

} // namespace

void sessions(connection& client, const connection::request& what, const wire::Sessions&,
              protocol::descriptor_list&) {
  client.ask(what, client.group().group, sessions_request{protocol::sessions_listed_max},
             "the trust group's actor has ended", [&client, what](const sessions_answer& answer) {
               client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
                 std::vector<flatbuffers::Offset<wire::SessionStatus>> listed;
                 for (const listed_session& one : answer.listed)
                   listed.push_back(write(body, one));
                 return wire::CreateSessionsAnswer(body, answer.count, answer.bytes, answer.evicted,
                                                   body.CreateVector(listed), answer.held, answer.held_bytes);
               });
             });
}

} // namespace terrace::actors::verbs
