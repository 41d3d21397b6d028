// unpin: ends the pin of a prompt.
#include "actors/connection/verbs.hpp"

namespace terrace::actors::verbs {

task<> unpin(client_request& request, const wire::Unpin& asked, protocol::descriptor_list&) {
  request.take_terms(asked);
  connected_client& client = request.client;
  if (!request.may_govern("a pin serves all clients of the trust group"))
    co_return;
  auto in = request.space(asked.space());
  if (!in)
    co_return;
  const wire::Prefix& sent = *asked.prefix();
  auto prefix = co_await request.chunks(*in, sent);
  if (prefix.chunks.empty()) {
    request.refuse({errc::bad_request, "expected a prompt of at least one whole chunk"});
    co_return;
  }
  const auto& group = client.group().group;
  unpin_request prompt{in->what->id, prefix.chunks.back()};
  auto done = co_await request.ask<unpin_answer>(group, std::move(prompt), group_ended);
  co_await request.leases_ended(); // what was pinned can be evicted then
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateUnpinAnswer(body, done.pins, done.bytes);
  });
}

} // namespace terrace::actors::verbs
