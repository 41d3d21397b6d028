// Shared by load and read_lease.
#pragma once

#include "actors/connection/verbs/run_transfer.hpp"
#include "actors/transfer/load_actor.hpp"

namespace terrace::actors::verbs {

/// Runs the load, and calls `on_result` unless it failed: then the request is refused.
template <class F>
void start_load(connection& client, const connection::request& what, load_job job, F on_result) {
  run_transfer<load_result>(client, what, client.idle_loads(), spawn_load, std::move(job),
                            [on_result](const load_result& done) {
                              if (done.failure.code == errc::ok)
                                on_result(done);
                            });
}

/// The object that ended the load early, by the numbers of the wire.
inline std::optional<wire::Missing> missing_of(const load_result& done, const transfer_scope& scope,
                                               uint16_t rank, const space_spec& spec) {
  if (!done.missing)
    return std::nullopt;
  prefix_object object = scope.object(*done.missing, spec, rank);
  return wire::Missing(object.chunk, object.pool, object.rank, done.damaged);
}

} // namespace terrace::actors::verbs
