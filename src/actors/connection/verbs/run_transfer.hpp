// Starts a load or a store for a connection.
#pragma once

#include "actors/connection/connection.hpp"
#include "actors/connection/prefixes.hpp"

#include <optional>

namespace terrace::actors::verbs {

/// The part of `chunks` chunks selected by `request`, charged to its credit; nullopt if it is invalid, and the request
/// was refused.
template <class Request>
std::optional<transfer_scope> scope_of(connection& client, const connection::request& what,
                                       const Request& request, const space_spec& spec, size_t chunks) {
  auto range = checked_range(chunks, request.first_chunk(), request.chunks());
  if (!range) {
    client.refuse(what, range.error());
    return std::nullopt;
  }
  auto pools = checked_pools(spec, request.pools(), range->count);
  if (!pools) {
    client.refuse(what, pools.error());
    return std::nullopt;
  }
  client.charge_objects(what, range->count * pools->size());
  return transfer_scope{*range, std::move(*pools)};
}

/// Runs the job on one of `idle`, or on a new actor from `spawn`, and calls `then` with its result. If the
/// result is a failure, the request is refused afterwards; otherwise `then` answers it. `idle` is the
/// connection's.
template <class Result, class Job, class F>
void run_transfer(connection& client, const connection::request& what, actor_pool& idle,
                  caf::actor (*spawn)(caf::actor_system&), Job job, F then) {
  caf::actor worker = idle.take([&] { return spawn(client.system()); });
  client.ask(
      worker, std::move(job),
      [&client, &idle, what, then, worker](const Result& done) {
        then(done);
        if (done.failure.code != errc::ok)
          client.refuse(what, done.failure);
        else
          idle.put_back(worker);
      },
      [&client, what, then] {
        Result lost;
        lost.failure = {errc::internal, "the transfer's actor has ended"};
        then(lost);
        client.refuse(what, lost.failure);
      });
}

} // namespace terrace::actors::verbs
