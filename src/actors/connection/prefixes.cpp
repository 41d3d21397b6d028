#include "actors/connection/prefixes.hpp"

#include "actors/connection/connection_actor.hpp"
#include "connection/request_values.hpp"

namespace terrace::actors {

namespace {

/// Prompts of so few tokens are hashed with the connection's own hasher.
constexpr size_t short_tokens = 16'384;

struct hashing {
  std::shared_ptr<token_hasher> hasher;
  space_ptr in;
  prefix_resolver resolver;
  connection::request what;
  size_t objects; ///< of one rank, about
  chunks_handler then;
  keep_alive body; ///< of the frame, if the work takes more than one slice
};

void hash_on(connection& client, const std::shared_ptr<hashing>& work) {
  if (!work->what.context->live()) {
    client.refuse(work->what,
                  {work->what.context->ended.load(), "the request ended while its prompt was hashed"});
    return;
  }
  if (work->resolver.step(hash_step_work)) {
    work->then(work->resolver.take(), work->body);
    if (work->body)
      client.objects_are_known(work->what);
    return;
  }
  if (!work->body) { // others are read meanwhile
    work->body = client.channel().hold();
    client.expect_objects(work->what, work->objects);
  }
  client.resume(work->what, [&client, work] { hash_on(client, work); });
}

struct naming {
  scope_objects objects;
  keep_alive body;
  std::function<void(batch_ptr)> then;
};

void name_on(connection& client, const connection::request& what, const std::shared_ptr<naming>& work) {
  if (!what.context->live()) {
    client.refuse(what, {what.context->ended.load(), "the request ended while its objects were named"});
    return;
  }
  if (work->objects.step())
    work->then(work->objects.take());
  else
    client.resume(what, [&client, what, work] { name_on(client, what, work); });
}

} // namespace

void with_chunks(connection& client, const connection::request& what, const client_space& in,
                 const wire::Prefix& prefix, chunks_handler then) {
  auto input = input_of(prefix);
  bool short_work = input.tokens.size() <= short_tokens;
  const space_spec& spec = in.what->spec;
  size_t chunks = input.tokens.empty() ? input.digests.size() / std::max<size_t>(input.digest_width, 1)
                                       : input.tokens.size() / spec.chunk_tokens;
  auto hasher = short_work ? in.hasher : std::shared_ptr<token_hasher>(make_token_hasher(in.what->spec));
  auto resolver = prefix_resolver::make(in.what->spec, *hasher, std::move(input));
  if (!client.ok(what, resolver))
    return;
  hash_on(client, std::make_shared<hashing>(hashing{std::move(hasher), in.what, std::move(*resolver), what,
                                                    chunks * spec.pools.size(), std::move(then), nullptr}));
}

void with_objects(connection& client, const connection::request& what, scope_subject of, keep_alive body,
                  std::function<void(batch_ptr)> then) {
  bool few = of.scope.objects() <= scope_objects::slice_objects;
  scope_objects objects(std::move(of));
  if (few && objects.step()) {
    then(objects.take());
    return;
  }
  if (!body)
    body = client.channel().hold();
  name_on(client, what,
          std::make_shared<naming>(naming{std::move(objects), std::move(body), std::move(then)}));
}

outside_memory outside(const std::shared_ptr<const client_region>& region) {
  return {region->data(), region->fd(), region->size(), region};
}

} // namespace terrace::actors
