#include "actors/connection/prefixes.hpp"

#include "actors/connection/connection_actor.hpp"
#include "actors/connection/session_prefixes.hpp"
#include "group/leased_part.hpp"
#include "connection/request_values.hpp"

namespace terrace::actors {

namespace {

/// A prompt that is not hashed at once. The work goes on in turns that others who were just woken precede
/// (job_queue.hpp).
struct hashing {
  std::shared_ptr<token_hasher> hasher;
  space_ptr in;
  prefix_resolver resolver;
  connection::request what;
  chunks_handler then;
  keep_alive body; ///< of the frame
};

bool hash_some(connection& client, hashing& work) {
  auto done = work.resolver.step(hash_step_work);
  if (!client.ok(work.what, done))
    return true;
  if (!*done)
    return false;
  work.then(work.resolver.take(), work.body);
  client.objects_are_known(work.what);
  return true;
}

} // namespace

void with_prompt_chunks(connection& client, const connection::request& what, const client_space& in,
                        const wire::Prefix& prefix, chunks_handler then) {
  if (prefix.session() != nullptr) {
    with_turn(client, what, in, prefix, prefix.tail(),
              [then = std::move(then)](chunk_prefix whole, const hashed_turn&, const keep_alive& body) {
                then(std::move(whole), body);
              });
    return;
  }
  auto input = input_of(prefix);
  bool short_work = input.tokens.size() <= short_tokens;
  const space_spec& spec = in.what->spec;
  size_t chunks = input.tokens.empty() ? input.digests.size() / std::max<size_t>(input.digest_width, 1)
                                       : input.tokens.size() / spec.chunk_tokens;
  auto hasher = short_work ? in.hasher : std::shared_ptr<token_hasher>(make_token_hasher(in.what->spec));
  auto resolver = prefix_resolver::make(in.what->spec, *hasher, std::move(input), in.what->memo.get());
  if (!client.ok(what, resolver))
    return;
  auto done = resolver->step(hash_step_work / 8);
  if (!client.ok(what, done))
    return;
  if (*done) {
    then(resolver->take(), nullptr);
    return;
  }
  auto work = std::make_shared<hashing>(
      hashing{std::move(hasher), in.what, std::move(*resolver), what, std::move(then), client.hold_body()});
  client.expect_objects(what, chunks * spec.pools.size()); // others are read meanwhile
  client.resume(what, [&client, work] {
    client.in_steps(work->what, "its prompt was hashed",
                    [&client, work] { return hash_some(client, *work); });
  });
}

void with_chunks(connection& client, const connection::request& what, const client_space& in,
                 const wire::Prefix& prefix, chunks_handler then) {
  if (prefix.tail() && prefix.session() == nullptr)
    client.refuse(what, {errc::bad_request,
                         "prefix: expected a session with a tail: a partial chunk is found by the "
                         "sessions and prompts that it belongs to alone"});
  else
    with_prompt_chunks(client, what, in, prefix, std::move(then));
}

void with_stored_chunks(connection& client, const connection::request& what, const client_space& in,
                        const wire::Prefix& prefix, chunks_handler then) {
  with_prompt_chunks(
      client, what, in, prefix,
      [&client, what, in = in.what, then = std::move(then)](chunk_prefix chunks, keep_alive body) {
        if (chunks.tail_tokens == 0) {
          then(std::move(chunks), std::move(body));
          return;
        }
        if (!body)
          body = client.hold_body();
        digest key = chunks.chunks.back();
        client.with_tail(what, in, key, [then, chunks = std::move(chunks), body]() mutable {
          then(std::move(chunks), std::move(body));
        });
      });
}

namespace {

void make_objects(connection& client, const connection::request& what, scope_subject of, keep_alive body,
                  std::function<void(batch_ptr)> then) {
  bool few = of.scope.objects() <= scope_objects::slice_objects;
  scope_objects objects(std::move(of));
  if (few && objects.step()) {
    then(objects.take());
    return;
  }
  auto work = std::make_shared<scope_objects>(std::move(objects));
  client.in_steps(what, "its objects were named", [work, body, then = std::move(then)] {
    bool done = work->step();
    if (done)
      then(work->take());
    return done;
  });
}

} // namespace

void with_objects(connection& client, const connection::request& what, scope_subject of, keep_alive body,
                  std::function<void(batch_ptr)> then) {
  size_t count = of.scope.objects();
  if (!body && (count > scope_objects::slice_objects || connection::may_wait_for_room(count)))
    body = client.hold_body();
  client.with_room(what, count, [&client, what, of = std::move(of), body, then = std::move(then)]() mutable {
    make_objects(client, what, std::move(of), std::move(body), std::move(then));
  });
}

void with_leased_objects(connection& client, const connection::request& what, const lease_ptr& from,
                         const transfer_scope& scope, uint16_t rank, keep_alive body,
                         std::function<void(batch_ptr, tier_holds)> then) {
  with_objects(client, what, subject_of(from, scope, rank), body,
               [&client, what, from, scope, rank, body, then = std::move(then)](const batch_ptr& objects) {
                 auto part = std::make_shared<leased_part>(from, scope, rank);
                 client.in_steps(what, "its objects were named", [objects, part, then] {
                   bool done = part->step();
                   if (done)
                     then(objects, part->take());
                   return done;
                 });
               });
}

outside_memory outside(const std::shared_ptr<const client_region>& region) {
  region->copy_begins();
  return {.data = region->data(),
          .fd = region->fd(),
          .bytes = region->size(),
          .owner = region,
          .device = region->device().get(),
          .ahead = region->ahead()};
}

} // namespace terrace::actors
