// A delayed reply that cannot be forgotten.
#pragma once

#include "actors/messages.hpp"

#include <caf/typed_response_promise.hpp>

#include <memory>

namespace terrace::actors {

/// Shared owner of a response promise for an answer type `T` that has a field `failure`. When the last copy
/// goes while nobody has answered, the requester gets `internal` instead of silence (CAF drops a promise
/// without a word). It belongs to the actor that made it and never moves to another actor or thread.
template <class T>
class answer {
 public:
  answer() = default;
  explicit answer(caf::typed_response_promise<T> promise)
      : state_(std::make_shared<state>(std::move(promise))) {}

  void deliver(T value) {
    if (state_ && state_->promise.pending())
      state_->promise.deliver(std::move(value));
  }

  void fail(error failure) {
    T value;
    value.failure = std::move(failure);
    deliver(std::move(value));
  }

  caf::typed_response_promise<T> promise() const { return state_->promise; }

 private:
  struct state {
    explicit state(caf::typed_response_promise<T> p) : promise(std::move(p)) {}
    ~state() {
      if (!promise.pending())
        return;
      T value;
      value.failure = error{errc::internal, "the request was dropped before it was answered"};
      promise.deliver(std::move(value));
    }
    caf::typed_response_promise<T> promise;
  };
  std::shared_ptr<state> state_;
};

/// `auto reply = make_answer<probe_answer>(self);` in a handler that returns `reply.promise()`.
template <class T, class Self>
answer<T> make_answer(Self* self) {
  return answer<T>(self->template make_response_promise<T>());
}

} // namespace terrace::actors
