// open_space: what the client's KV is, so that only interchangeable KV is shared.
#include "actors/verbs.hpp"

namespace terrace::actors::verbs {

namespace {

std::string text(const flatbuffers::String* from) { return from == nullptr ? std::string() : from->str(); }

space_spec spec_of(const wire::OpenSpace& request) {
  space_spec spec;
  spec.model = text(request.model());
  spec.revision = text(request.revision());
  spec.dtype = text(request.dtype());
  spec.layout = text(request.layout());
  spec.chunk_tokens = request.chunk_tokens();
  spec.hash_block_tokens = request.hash_block_tokens();
  spec.world_size = request.world_size();
  for (const wire::Pool* pool : *request.pools())
    spec.pools.push_back({pool->name()->str(), pool->object_bytes(), static_cast<hit_rule>(pool->hit_rule()),
                          pool->trailing(), pool->replicated()});
  spec.salt = text(request.salt());
  spec.algorithm = static_cast<hash_algorithm>(request.algorithm());
  spec.seed = text(request.seed());
  return spec;
}

} // namespace

void open_space(connection& client, const connection::request& what, protocol::frame& frame) {
  const auto* request = client.parse<wire::OpenSpace>(frame);
  if (request == nullptr)
    return;
  if (request->rank() >= request->world_size()) {
    client.refuse(what, {errc::bad_request, "rank is " + std::to_string(request->rank()) +
                                                "; expected less than world_size, " +
                                                std::to_string(request->world_size())});
    return;
  }
  auto rank = static_cast<uint16_t>(request->rank());
  client.self->request(client.group().group, caf::infinite, open_space_request{spec_of(*request)})
      .then(
          [&client, what, rank](const open_space_answer& answer) {
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
              return wire::CreateOpenSpaceAnswer(body, static_cast<uint32_t>(space.id), fingerprint);
            });
          },
          [&client, what](const caf::error&) {
            client.refuse(what, {errc::internal, "the trust group's actor has ended"});
          });
}

} // namespace terrace::actors::verbs
