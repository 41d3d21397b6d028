// fork_session: a session with the first tokens of another one.
#include "actors/connection/session_prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "base/random_id.hpp"

namespace terrace::actors::verbs {

namespace {

void answer(connection& client, const connection::request& what, const session_id& id,
            const session_state& state, size_t width) {
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> digest;
    if (state.tokens() != 0)
      digest = body.CreateVector(state.last().bytes.data(), width);
    auto session = body.CreateVector(id.bytes.data(), id.bytes.size());
    return wire::CreateForkSessionAnswer(body, session, state.tokens(), digest);
  });
}

void fork(connection& client, const connection::request& what, const client_space_ptr& in,
          const wire::ForkSession& asked, const session_use& from) {
  if (from.in != in->what->id) {
    client.refuse(what, {errc::bad_request, "session: it is in another space than the request"});
    return;
  }
  if (asked.tokens() > from.state->tokens()) {
    client.refuse(what, {errc::bad_request, "the session has " + std::to_string(from.state->tokens()) +
                                                " tokens: expected a fork at one of them, got " +
                                                std::to_string(asked.tokens())});
    return;
  }
  auto state = std::make_shared<const session_state>(from.state->cut(asked.tokens(), *in->hasher));
  session_id id{random_lease_id().bytes};
  open_session_request request{{id, client.record()->id, from.in, in->what->spec.chunk_tokens, asked.keep(),
                                from.held, from.root, state}};
  client.ask(what, client.group().group, std::move(request), "the trust group's actor has ended",
             [&client, what, id, state, width = in->hasher->width()](const open_session_answer&) {
               answer(client, what, id, *state, width);
             });
}

} // namespace

void fork_session(connection& client, const connection::request& what, const wire::ForkSession& asked,
                  protocol::descriptor_list&) {
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  auto body = client.hold_body(); // contains `asked`
  client.with_session(
      what, to_session_id(asked.session()), 0,
      [&client, what, in, &asked, body](const session_use& from) { fork(client, what, in, asked, from); });
}

} // namespace terrace::actors::verbs
