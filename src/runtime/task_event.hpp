// What one task of an actor waits for and another one of the same actor brings about.
#pragma once

#include "runtime/task.hpp"

#include <cassert>
#include <coroutine>
#include <memory>
#include <utility>

namespace terrace {

/// Set once, awaited by one task at most. Either side may be destroyed first.
class task_event {
 public:
  task_event() = default;
  task_event(const task_event&) = delete;
  task_event& operator=(const task_event&) = delete;

  /// Resumes the task that waits, which may destroy this event.
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
