// An event that one task of an actor awaits and another task of the same actor sets.
#pragma once

#include "runtime/task.hpp"

#include <cassert>
#include <coroutine>
#include <memory>
#include <utility>

namespace terrace {

/// Set once; at most one task awaits it. Either side may be destroyed first.
class task_event {
 public:
  task_event() = default;
  task_event(const task_event&) = delete;
  task_event& operator=(const task_event&) = delete;

  /// Resumes the waiting task, which may destroy this event.
  void set() {
    assert(!set_);
    set_ = true;
    auto link = std::exchange(link_, {});
    if (link && link->alive())
      link->resume(waiting_);
  }

  bool await_ready() const noexcept { return set_; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> by) {
    assert(!link_);
    link_ = by.promise().link;
    waiting_ = by;
  }
  void await_resume() const noexcept {}

 private:
  bool set_ = false;
  std::shared_ptr<task_link> link_;
  std::coroutine_handle<> waiting_;
};

} // namespace terrace
