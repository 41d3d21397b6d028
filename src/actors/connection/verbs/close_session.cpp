// close_session: a conversation has ended. A turn in progress is not affected.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

task<> close_session(client_request& request, const wire::CloseSession& asked, protocol::descriptor_list&) {
  const auto& group = request.client.group().group;
  close_session_request session{to_session_id(asked.session())};
  auto done = co_await request.ask<close_session_answer>(group, std::move(session), group_ended);
  if (done.held) { // what it held can be evicted then
    co_await request.leases_ended();
  }
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateCloseSessionAnswer(body, done.closed);
  });
}

} // namespace terrace::actors::verbs
