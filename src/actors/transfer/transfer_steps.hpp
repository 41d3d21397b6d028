// Shared by loads and stores: both are coroutines that process a job window by window, wait for others that
// write the same objects, and end with one answer.
#pragma once

#include "actors/gpu/daemon/device_actor.hpp"
#include "actors/group/trust_group.hpp"
#include "runtime/answer.hpp"
#include "runtime/ask.hpp"
#include "transfer/copy_ops.hpp"

#include <caf/behavior.hpp>

#include <cassert>
#include <vector>

namespace terrace::actors {

/// The failure of the request, or that of its answer; ok otherwise.
template <class Answer>
error failure_of(const result<Answer>& answer) {
  return answer ? answer->failure : answer.error();
}

/// The answer of who copies between the arena and the outside memory: its device, or a copier. Several copiers, if what is copied is
/// long and they are idle.
template <class Self>
task<result<copy_answer>> copy_by(Self self, const trust_group& group, copy_request request) {
  if (request.outside.device != nullptr) {
    auto device = region_of(*request.outside.device).device();
    auto copied = co_await ask<copy_answer>(self, device, std::move(request), "device");
    co_return copied;
  }
  const size_t count = group.copiers->parts_now(copy_parts_max(request));
  auto parts = parts_of(std::move(request), count);
  if (parts.size() == 1) {
    copy_request whole = std::move(parts.front());
    const copier_actor& copier = group.copiers->next();
    auto copied = co_await ask<copy_answer>(self, copier, std::move(whole), "copier");
    co_return copied;
  }
  std::vector<question<copier_actor, copy_request>> questions;
  for (copy_request& part : parts)
    questions.push_back({group.copiers->next(), std::move(part)});
  auto answers = co_await ask_all<copy_answer>(self, std::move(questions), "copier");
  std::vector<copy_answer> copied;
  for (auto& each : answers) {
    if (!each)
      co_return tl::unexpected(each.error());
    copied.push_back(std::move(*each));
  }
  co_return joined(std::move(copied));
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
