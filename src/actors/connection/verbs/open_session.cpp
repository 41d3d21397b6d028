// open_session: a conversation whose turns send only their new tokens.
#include "actors/connection/verbs.hpp"
#include "base/random_id.hpp"
#include "connection/request_values.hpp"

namespace terrace::actors::verbs {

namespace {

result<session_root_ptr> root_of(const wire::OpenSession& asked, const token_hasher& hasher) {
  session_root root;
  if (asked.parent() != nullptr) {
    if (asked.parent()->size() != hasher.width())
      return fail(errc::bad_request, "the parent has " + std::to_string(asked.parent()->size()) +
                                         " bytes: expected " + std::to_string(hasher.width()));
    root.seed = digest::from(span_of(asked.parent()));
  }
  if (asked.lora() != nullptr)
    root.lora = asked.lora()->str();
  if (asked.salt() != nullptr)
    root.salt = asked.salt()->str();
  if (!root.seed && root.lora.empty() && root.salt.empty())
    return nullptr;
  return std::make_shared<const session_root>(std::move(root));
}

} // namespace

task<> open_session(client_request& request, const wire::OpenSession& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto in = request.space(asked.space());
  if (!in)
    co_return;
  auto root = root_of(asked, *in->hasher);
  co_await request.valid(root);
  session_id id{random_lease_id().bytes};
  open_session_request opening{{id, client.record()->id, in->what->id, in->what->spec.chunk_tokens,
                                asked.keep(), asked.mode() == wire::SessionMode::held, std::move(*root),
                                nullptr}};
  const auto& group = client.group().group;
  co_await request.ask<open_session_answer>(group, std::move(opening), group_ended);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateOpenSessionAnswer(body, body.CreateVector(id.bytes.data(), id.bytes.size()));
  });
}

} // namespace terrace::actors::verbs
