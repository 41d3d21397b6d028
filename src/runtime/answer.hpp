// A delayed reply that cannot be forgotten.
#pragma once

#include "base/error.hpp"

#include <caf/typed_response_promise.hpp>

#include <memory>

namespace terrace {

/// A shared owner of a response promise for an answer type `T` with a field `failure`. If the last copy is
/// destroyed without an answer, the requester gets `internal` instead of nothing (CAF drops a promise
/// silently). Must stay with the actor that created it, on its thread.
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

} // namespace terrace
