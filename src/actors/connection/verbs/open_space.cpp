// open_space: declares the client's KV, so that only interchangeable KV is shared.
#include "actors/connection/verbs.hpp"
#include "connection/open_pools.hpp"
#include "connection/request_values.hpp"

namespace terrace::actors::verbs {

void open_space(connection& client, const connection::request& what, const wire::OpenSpace& asked,
                protocol::descriptor_list&) {
  auto spec = spec_of(asked);
  if (!spec) {
    client.refuse(what, spec.error());
    return;
  }
  auto rank = static_cast<uint16_t>(asked.rank());
  client.ask(what, client.group().group, open_space_request{std::move(*spec)},
             "the trust group's actor has ended", [&client, what, rank](const open_space_answer& answer) {
               if (answer.failure.code != errc::ok) {
                 client.refuse(what, answer.failure);
                 return;
               }
               const opened_space& space = *answer.opened;
               auto mine = std::make_shared<client_space>();
               mine->what = answer.opened;
               mine->hasher = make_token_hasher(space.spec);
               mine->rank = rank;
               mine->probe = client.environment().spaces->probe(client.group().name, space.spec.model);
               client.opened(std::move(mine));
               client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
                 auto fingerprint =
                     body.CreateVector(space.fingerprint.bytes.data(), space.fingerprint.bytes.size());
                 auto pools = write_open_pools(body, space.spec);
                 return wire::CreateOpenSpaceAnswer(body, static_cast<uint32_t>(space.id), fingerprint,
                                                    pools);
               });
             });
}

} // namespace terrace::actors::verbs
