// cancel: ends a request of this connection early, or a lookup by its id.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

task<> cancel(client_request& request, const wire::Cancel& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  bool found = false;
  if (asked.lookup_id() != nullptr) {
    const auto& group = client.group().group;
    cancel_lookup_request lookup{protocol::to_lookup_id(asked.lookup_id())};
    auto cancelled = co_await request.ask<cancel_lookup_answer>(group, std::move(lookup), group_ended);
    found = cancelled.found;
  } else {
    found = asked.request() != request.id && request.inbox().cancel(asked.request(), errc::cancelled);
  }
  request.reply([&](flatbuffers::FlatBufferBuilder& body) { return wire::CreateCancelAnswer(body, found); });
}

} // namespace terrace::actors::verbs
