// Long work in steps: a function that yields at points where others may have their turn.
//
//   steps count_all(const things& of, size_t& count) { // the arguments must outlive it
//     step_pace pace(1024);
//     for (const thing& one : of) {
//       count += one.size();
//       if (pace.due())
//         co_yield {};
//     }
//   }
//   while (work.next()) ...; // here others have their turn
#pragma once

#include <coroutine>
#include <cstddef>
#include <utility>

namespace terrace {

/// A coroutine that only its owner resumes. It does nothing before the first `next`. It may be destroyed at
/// any time, with everything that it holds. Used by one thread at a time.
class [[nodiscard]] steps {
 public:
  struct promise_type {
    steps get_return_object() { return steps(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    struct pause {};
    std::suspend_always yield_value(pause) noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; } // passed on to the caller of `next`
  };

  steps() = default; ///< nothing to do
  steps(steps&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  steps& operator=(steps&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~steps() {
    if (frame_)
      frame_.destroy();
  }

  /// Does one step. Returns true if another one follows.
  bool next() {
    if (!frame_ || frame_.done())
      return false;
    frame_.resume();
    return !frame_.done();
  }
  void all() {
    while (next())
      ;
  }

 private:
  explicit steps(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  std::coroutine_handle<promise_type> frame_;
};

/// Says when a step has done enough work and should end.
class step_pace {
 public:
  explicit step_pace(size_t per_step) : per_step_(per_step), left_(per_step) {}
  /// Adds finished work. Returns true if the step should end here.
  bool due(size_t done = 1) {
    if (done < left_) {
      left_ -= done;
      return false;
    }
    left_ = per_step_;
    return true;
  }

 private:
  size_t per_step_;
  size_t left_;
};

} // namespace terrace
