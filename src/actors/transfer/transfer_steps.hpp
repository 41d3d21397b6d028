// Shared by loads and stores: both are coroutines that process a job window by window, wait for others that
// write the same objects, and end with one answer.
#pragma once

#include "actors/transfer/transfer_arguments.hpp"
#include "coroutine/answer.hpp"
#include "coroutine/ask.hpp"
#include "storage/object_header.hpp"
#include "tier/object_slices.hpp"
#include "transfer/scatter_gather.hpp"
#include "transfer/store_window.hpp"
#include "transfer/windows.hpp"

#include <caf/behavior.hpp>

#include <string>

namespace terrace::actors {

/// After this many rounds in which others kept taking or abandoning what a window waited for, a transfer
/// gives up.
constexpr int window_attempts_max = 16;

/// Objects [begin, end) of a job.
struct transfer_window {
  size_t begin = 0;
  size_t end = 0;
  batch_ptr objects;
  size_t size() const { return end - begin; }
};

/// Whole chunks starting at object `begin`: at most `bytes_max` of the arena, headers and padding included, at least one.
template <class Job>
transfer_window window_at(const Job& job, size_t begin, uint64_t bytes_max) {
  size_t end =
      window_end(job.objects->payload_bytes, begin, job.objects_per_chunk, bytes_max, physical_bytes_for);
  return {begin, end, slice(job.objects, begin, end)};
}

/// Why a transfer (`what`: a load, a store) must end; ok while its request is active.
inline error ended(const context_ptr& context, const char* what) {
  if (!context || context->live())
    return {};
  return {context->ended.load(), std::string("the request ended before its ") + what + " was complete"};
}

/// True if there was no space for a window that can be smaller.
template <class Job>
bool may_shrink(const Job& job, const transfer_window& window, const error& failure) {
  return failure.code == errc::no_space && job.runs && window.size() > job.objects_per_chunk &&
         (!job.context || job.context->live());
}

/// The failure of the request, or that of its answer; ok otherwise.
template <class Answer>
error failure_of(const result<Answer>& answer) {
  return answer ? answer->failure : answer.error();
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
        auto reply = make_answer<Result>(self);
        auto promise = reply.promise();
        self->state.progress = run_job<Self, Job, Result>(self, job, std::move(reply), serve);
        self->state.progress.start();
        return promise;
      },
  };
}

} // namespace terrace::actors
