// open_space: declares the client's KV, so that only interchangeable KV is shared.
#include "actors/connection/verbs.hpp"
#include "connection/open_pools.hpp"
#include "index/shaped_pools.hpp"

namespace terrace::actors::verbs {

namespace {

std::string text(const flatbuffers::String* from) { return from == nullptr ? std::string() : from->str(); }

std::vector<tensor_shape> tensors_of(const wire::Pool& pool, const std::string& dtype) {
  std::vector<tensor_shape> tensors;
  if (pool.tensors() != nullptr)
    for (const wire::Tensor* tensor : *pool.tensors())
      tensors.push_back({static_cast<tensor_format>(tensor->format()),
                         tensor->dtype() == nullptr ? dtype : tensor->dtype()->str(), tensor->kv_size(),
                         tensor->layers(), tensor->hidden(), tensor->first_layer()});
  return tensors;
}

result<space_spec> spec_of(const wire::OpenSpace& request) {
  space_spec spec;
  spec.model = text(request.model());
  spec.revision = text(request.revision());
  spec.dtype = text(request.dtype());
  spec.layout = text(request.layout());
  spec.chunk_tokens = request.chunk_tokens();
  spec.hash_block_tokens = request.hash_block_tokens();
  spec.world_size = request.world_size();
  for (const wire::Pool* pool : *request.pools()) {
    auto pools =
        shaped_pools({pool->name()->str(), pool->object_bytes(), static_cast<hit_rule>(pool->hit_rule()),
                      pool->trailing(), pool->replicated(), tensors_of(*pool, spec.dtype)},
                     pool->layer_groups(), spec.chunk_tokens);
    if (!pools)
      return tl::unexpected(pools.error());
    spec.pools.insert(spec.pools.end(), pools->begin(), pools->end());
  }
  spec.salt = text(request.salt());
  spec.algorithm = static_cast<hash_algorithm>(request.algorithm());
  spec.seed = text(request.seed());
  return spec;
}

} // namespace

void open_space(connection& client, const connection::request& what, const wire::OpenSpace& asked,
                protocol::descriptor_list&) {
  if (asked.rank() >= asked.world_size()) {
    client.refuse(what, {errc::bad_request, "rank is " + std::to_string(asked.rank()) +
                                                "; expected less than world_size, " +
                                                std::to_string(asked.world_size())});
    return;
  }
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
