// What loads and stores have in common: both go through a job window by window, wait for others that write the same
// objects, and end with one answer. `Self` is a pointer to a stateful actor whose state has a `job`
// (transfer_arguments.hpp) and the `transfer_progress` below.
#pragma once

#include "actors/answer.hpp"
#include "actors/transfer/object_slices.hpp"
#include "actors/transfer/transfer_arguments.hpp"
#include "storage/object_header.hpp"
#include "transfer/scatter_gather.hpp"
#include "transfer/windows.hpp"

#include <string>

namespace terrace::actors {

/// After so many rounds in which others kept taking or abandoning what a window waited for, a transfer waits no more.
constexpr int window_attempts_max = 16;

template <class Job, class Result>
struct transfer_progress {
  Job job;
  Result result;
  answer<Result> reply;

  size_t begin = 0; ///< the window in work: objects [begin, end) of the job
  size_t end = 0;
  int attempts = 0;
  batch_ptr window;
};

/// Answers and lets go of everything; after a failure the actor ends. Nothing of the job may be under way any more.
template <class Self>
void finish(Self self, error failure) {
  auto& state = self->state;
  bool failed = failure.code != errc::ok;
  state.result.failure = std::move(failure);
  state.reply.deliver(std::move(state.result));
  state = {};
  if (failed)
    self->quit();
}

/// The error handler of a request to an actor of the daemon, which only fails when that actor has ended.
template <class Self>
auto on_lost(Self self, const char* who) {
  return [self, who](const caf::error&) {
    finish(self, {errc::internal, std::string("the ") + who + " has ended"});
  };
}

/// Whether the request has ended; then the transfer (`what`: a load, a store) ends as well.
template <class Self>
bool ended(Self self, const char* what) {
  const auto& context = self->state.job.context;
  if (!context || context->live())
    return false;
  finish(self,
         {context->ended.load(), std::string("the request ended before its ") + what + " was complete"});
  return true;
}

/// Sets the window that begins where the last one ended. False: the job is done.
template <class State>
bool next_window(State& state, uint64_t bytes_max) {
  const object_batch& all = *state.job.objects;
  if (state.begin == all.size())
    return false;
  state.end = window_end(all.payload_bytes, state.begin, state.job.objects_per_chunk, bytes_max);
  state.window = slice(state.job.objects, state.begin, state.end);
  state.attempts = 0;
  return true;
}

/// The pieces of the window's object number `object`, which lies at `place` in the host arena.
template <class State>
void add_pieces(const State& state, copy_request& request, const object_place& place, size_t object) {
  std::byte* payload = state.job.group->memory->at(place.offset) + object_header_bytes;
  for (const object_piece& piece : state.job.runs->pieces(state.begin + object))
    request.pieces.push_back({payload + piece.object_offset, piece.region_offset, piece.bytes});
}

/// Calls `again` when nobody writes objects of the window any more.
template <class Self, class F>
void await_others(Self self, F again) {
  auto& state = self->state;
  self->request(state.job.group->host, caf::infinite, await_request{state.window, state.job.context})
      .then(
          [self, again](const await_answer& answer) {
            if (answer.failure.code != errc::ok)
              finish(self, answer.failure);
            else
              again(self);
          },
          on_lost(self, "host tier"));
}

/// The behaviour of a transfer: on a job it begins with `begin` and answers at its end. One job at a time.
template <class Job, class Self, class F>
caf::behavior transfer_behavior(Self self, F begin) {
  return {
      [self, begin](const Job& job) {
        auto& state = self->state;
        state.job = job;
        state.reply = decltype(state.reply)(
            self->template make_response_promise<std::decay_t<decltype(state.result)>>());
        auto promise = state.reply.promise();
        begin(self);
        return promise;
      },
  };
}

} // namespace terrace::actors
