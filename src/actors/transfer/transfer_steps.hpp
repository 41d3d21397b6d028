// Shared by loads and stores: both are coroutines that process a job window by window, wait for others that
// write the same objects, and end with one answer.
#pragma once

#include "actors/gpu/device_actor.hpp"
#include "actors/transfer/transfer_arguments.hpp"
#include "coroutine/answer.hpp"
#include "coroutine/ask.hpp"

#include <caf/behavior.hpp>

#include <cassert>

namespace terrace::actors {

/// The failure of the request, or that of its answer; ok otherwise.
template <class Answer>
error failure_of(const result<Answer>& answer) {
  return answer ? answer->failure : answer.error();
}

/// Who copies between the arena and this memory: its device, or the next copier.
inline copying_actor copier_of(const group_parts& group, const outside_memory& memory) {
  if (memory.device != nullptr)
    return region_of(*memory.device).device();
  return group.copiers->next();
}

/// One job from start to answer. After a failure the actor ends.
template <class Self, class Job, class Result>
task<> run_job(Self self, Job job, answer<Result> reply, task<error> (*serve)(Self, const Job&, Result&)) {
  Result done;
  auto failure = co_await serve(self, job, done);
  bool failed = failure.code != errc::ok;
  done.failure = std::move(failure);
  reply.deliver(std::move(done));
  if (failed)
    self->quit();
}

/// The behavior of a transfer: `serve` executes a job. One job at a time.
template <class Self, class Job, class Result>
caf::behavior transfer_behavior(Self self, task<error> (*serve)(Self, const Job&, Result&)) {
  return {
      [self, serve](const Job& job) {
        assert(!self->state.progress.in_progress());
        auto reply = make_answer<Result>(self);
        auto promise = reply.promise();
        self->state.progress = run_job<Self, Job, Result>(self, job, std::move(reply), serve);
        self->state.progress.start();
        return promise;
      },
  };
}

} // namespace terrace::actors
