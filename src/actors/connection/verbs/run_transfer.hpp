// Starts a load or a store for a connection.
#pragma once

#include "actors/connection/connection.hpp"
#include "actors/connection/prefixes.hpp"
#include "connection/request_values.hpp"

#include <optional>

namespace terrace::actors::verbs {

/// The part of a lease's `chunks` chunks selected by `request`; nullopt if it is invalid, and the request was refused.
template <class Request>
std::optional<transfer_scope> scope_of(connection& client, const connection::request& what,
                                       const Request& request, const space_spec& spec, size_t chunks) {
  auto scope = terrace::scope_of(request, spec, chunks);
  if (!client.ok(what, scope))
    return std::nullopt;
  return std::move(*scope);
}

/// The same of the chunks of the request's prefix.
template <class Request>
std::optional<transfer_scope> prefix_scope_of(connection& client, const connection::request& what,
                                              const Request& request, const space_spec& spec, size_t chunks) {
  auto scope = terrace::prefix_scope_of(request, spec, chunks);
  if (!client.ok(what, scope))
    return std::nullopt;
  return std::move(*scope);
}

/// Resolves the prefix of `request` by `chunks_of`, which is `with_chunks` or `with_stored_chunks`, and calls
/// `then(prefix, scope, objects)` with the part that it selects, or refuses the request. The frame is kept until then.
template <class Request, class F>
void with_prefix_objects(connection& client, const connection::request& what, const client_space_ptr& in,
                         const Request& request, decltype(&with_chunks) chunks_of, F then) {
  chunks_of(client, what, *in, *request.prefix(),
            [&client, what, in, &request, then](chunk_prefix prefix, const keep_alive& body) {
              auto scope = prefix_scope_of(client, what, request, in->what->spec, prefix.chunks.size());
              if (!scope)
                return;
              auto whole = std::make_shared<const chunk_prefix>(std::move(prefix));
              scope_subject of{in->what, {whole, &whole->chunks}, whole->parent, *scope, in->rank};
              with_objects(
                  client, what, std::move(of), body,
                  [then, whole, scope = *scope](const batch_ptr& objects) { then(*whole, scope, objects); });
            });
}

/// Runs the job on one of `idle`, or on a new actor from `spawn`, and calls `then` with its result. If the
/// result is a failure, the request is refused afterwards; otherwise `then` answers it. `idle` is the
/// connection's.
template <class Result, class Job, class F>
void run_transfer(connection& client, const connection::request& what, actor_pool& idle,
                  caf::actor (*spawn)(caf::actor_system&), Job job, F then) {
  caf::actor worker = idle.take([&] { return spawn(client.system()); });
  client.ask(worker, std::move(job),
             client.guarded(what,
                            [&client, &idle, what, then, worker](const Result& done) {
                              then(done);
                              if (client.ok(what, done.failure))
                                idle.put_back(worker);
                            }),
             [&client, what, then] {
               Result lost;
               lost.failure = {errc::internal, "the transfer's actor has ended"};
               then(lost);
               client.refuse(what, lost.failure);
             });
}

} // namespace terrace::actors::verbs
