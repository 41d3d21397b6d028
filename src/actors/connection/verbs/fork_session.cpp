// fork_session: a session with the first tokens of another one.
#include "actors/connection/verbs.hpp"
#include "base/random_id.hpp"

namespace terrace::actors::verbs {

task<> fork_session(client_request& request, const wire::ForkSession& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto in = request.space(asked.space());
  if (!in)
    co_return;
  session_id parent = to_session_id(asked.session());
  auto from = co_await request.session(parent, 0);
  if (from.in != in->what->id) {
    request.refuse({errc::bad_request, "session: it is in another space than the request"});
    co_return;
  }
  if (asked.tokens() > from.state->tokens()) {
    request.refuse({errc::bad_request, "the session has " + std::to_string(from.state->tokens()) +
                                           " tokens: expected a fork at one of them, got " +
                                           std::to_string(asked.tokens())});
    co_return;
  }
  auto state = std::make_shared<const session_state>(from.state->cut(asked.tokens(), *in->hasher));
  session_id id{random_lease_id().bytes};
  open_session_request opening{{id, client.record()->id, from.in, in->what->spec.chunk_tokens, asked.keep(),
                                from.held, from.root, state}};
  const auto& group = client.group().group;
  co_await request.ask<open_session_answer>(group, std::move(opening), group_ended);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> digest;
    if (state->tokens() != 0)
      digest = body.CreateVector(state->last().bytes.data(), in->hasher->width());
    auto session = body.CreateVector(id.bytes.data(), id.bytes.size());
    return wire::CreateForkSessionAnswer(body, session, state->tokens(), digest);
  });
}

} // namespace terrace::actors::verbs
