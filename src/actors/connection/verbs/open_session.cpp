// open_session: a conversation whose turns send only their new tokens.
#include "actors/connection/session_prefixes.hpp"
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

void open_session(connection& client, const connection::request& what, const wire::OpenSession& asked,
                  protocol::descriptor_list&) {
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  auto root = root_of(asked, *in->hasher);
  if (!client.ok(what, root))
    return;
  session_id id{random_lease_id().bytes};
  open_session_request request{{id, client.record()->id, in->what->id, in->what->spec.chunk_tokens,
                                asked.keep(), asked.mode() == wire::SessionMode::held, std::move(*root),
                                nullptr}};
  client.ask(what, client.group().group, std::move(request), "the trust group's actor has ended",
             [&client, what, id](const open_session_answer&) {
               client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
                 return wire::CreateOpenSessionAnswer(body,
                                                      body.CreateVector(id.bytes.data(), id.bytes.size()));
               });
             });
}

} // namespace terrace::actors::verbs
