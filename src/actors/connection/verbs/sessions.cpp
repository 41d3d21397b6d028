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
                                   listed.held_tokens, listed.held_bytes, one.saved ? one.saved->tokens() : 0,
                                   one.saved ? one.saved->tail_tokens : 0, one.own_tokens);
}

} // namespace

task<> sessions(client_request& request, const wire::Sessions& asked, protocol::descriptor_list&) {
  sessions_request wanted{protocol::sessions_listed_max, std::nullopt};
  if (asked.session() != nullptr)
    wanted.only = to_session_id(asked.session());
  const auto& group = request.client.group().group;
  auto found = co_await request.ask<sessions_answer>(group, std::move(wanted), group_ended);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<flatbuffers::Offset<wire::SessionStatus>> listed;
    for (const listed_session& one : found.listed)
      listed.push_back(write(body, one));
    return wire::CreateSessionsAnswer(body, found.count, found.bytes, found.evicted,
                                      body.CreateVector(listed), found.held, found.held_bytes);
  });
}

} // namespace terrace::actors::verbs
