// Splits a coroutine into turns between which other actors run (task.hpp).
//
//   co_await next_turn<next_slice>(self, state.wait);      // sends itself a `next_slice`
//   ...
//   [self](next_slice) { self->state.wait.over(); }
#pragma once

#include "runtime/task.hpp"

#include <cassert>
#include <functional>
#include <utility>

namespace terrace {

/// The place where a coroutine waits for its next turn. The state of its actor has one per coroutine.
class turn_wait {
 public:
  /// The turn has come: continues the coroutine if it still exists.
  void over() {
    if (auto go_on = std::exchange(go_on_, nullptr))
      go_on();
  }

  template <class Promise>
  void begin(std::coroutine_handle<Promise> frame) {
    assert(!go_on_); // one turn at a time
    go_on_ = [link = frame.promise().link, frame] {
      if (link->alive())
        link->resume(frame);
    };
  }

 private:
  std::function<void()> go_on_;
};

/// Sends `self` a `Notice` and waits until it arrives.
template <class Notice, class Self>
class [[nodiscard]] next_turn_awaiter {
 public:
  next_turn_awaiter(Self* self, turn_wait& wait) : self_(self), wait_(&wait) {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> frame) {
    wait_->begin(frame);
    self_->send(self_, Notice{});
  }
  void await_resume() const noexcept {}

 private:
  Self* self_;
  turn_wait* wait_;
};

template <class Notice, class Self>
next_turn_awaiter<Notice, Self> next_turn(Self* self, turn_wait& wait) {
  return {self, wait};
}

} // namespace terrace
