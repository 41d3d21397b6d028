// A load or a store on behalf of a connection: what it is about, and its start.
#pragma once

#include "actors/connection.hpp"
#include "actors/prefixes.hpp"

#include <optional>

namespace terrace::actors::verbs {

/// What `request` names of `chunks` chunks of such a space; nothing when that is wrong, and the request was refused.
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
  return transfer_scope{*range, std::move(*pools)};
}

/// Starts `worker` and calls `then` with its result. When that is a failure, the request is refused afterwards: `then`
/// answers it otherwise.
template <class Result, class Start, class F>
void run_transfer(connection& client, const connection::request& what, const caf::actor& worker, Start start,
                  F then) {
  client.self->request(worker, caf::infinite, start)
      .then(
          [&client, what, then](const Result& done) {
            then(done);
            if (done.failure.code != errc::ok)
              client.refuse(what, done.failure);
          },
          [&client, what, then](const caf::error&) {
            Result lost;
            lost.failure = {errc::internal, "the transfer's actor has ended"};
            then(lost);
            client.refuse(what, lost.failure);
          });
}

} // namespace terrace::actors::verbs
