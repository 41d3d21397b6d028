// A load or a store on behalf of a connection.
#pragma once

#include "actors/connection.hpp"

namespace terrace::actors::verbs {

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
