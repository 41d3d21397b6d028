// A request in progress, as a coroutine that belongs to its actor.
//
//   struct my_state { task<> progress; };
//   task<> serve(self_pointer self, my_request what) { // parameters by value: they live in the frame
//     auto found = co_await ask<probe_answer>(self, tier, question, "host tier");
//     ...
//   }
//   [self](const my_request& what) { self->state.progress = serve(self, what); self->state.progress.start(); }
//
// The frame belongs to the actor's state. Only the actor's messages resume it. It is destroyed when it is
// done, or with the actor or its `task` wherever it is suspended, together with everything it holds; answers
// that arrive later are dropped.
//
// GCC 12 destroys some temporaries of await expressions twice or never. So an await is a statement of its own, and its
// operands are names, members, literals or `std::move` of a name; tools/check_layers.py enforces it.
#pragma once

#include <array>
#include <cassert>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace terrace {

// Memory for coroutine frames, which have a few sizes that recur.

/// Free frames of this thread by size, at most `kept_max` of each size. A frame may be freed on another
/// thread than the one that allocated it, because floating actors move.
class frame_pool {
 public:
  static constexpr size_t step_bytes = 128;
  static constexpr size_t largest_bytes = 4096; ///< larger ones are not kept
  static constexpr size_t kept_max = 64;

  frame_pool() = default;
  frame_pool(const frame_pool&) = delete;
  frame_pool& operator=(const frame_pool&) = delete;
  ~frame_pool() {
    for (auto& frames : lists_)
      while (frames.first != nullptr)
        ::operator delete(frames.pop());
  }

  static void* take(size_t bytes) {
    size_t n = number(bytes);
    if (n < lists && !closed && of_thread().lists_[n].first != nullptr)
      return of_thread().lists_[n].pop();
    return ::operator new(n < lists ? (n + 1) * step_bytes : bytes);
  }

  static void give_back(void* frame, size_t bytes) noexcept {
    size_t n = number(bytes);
    if (n < lists && !closed && of_thread().lists_[n].count < kept_max)
      of_thread().lists_[n].push(frame);
    else
      ::operator delete(frame);
  }

 private:
  static constexpr size_t lists = largest_bytes / step_bytes;

  struct node {
    node* next = nullptr;
  };
  struct list {
    node* first = nullptr;
    size_t count = 0;
    void push(void* at) {
      first = new (at) node{first};
      ++count;
    }
    void* pop() {
      node* taken = first;
      first = taken->next;
      --count;
      return taken;
    }
  };

  static size_t number(size_t bytes) { return (bytes - 1) / step_bytes; }
  static frame_pool& of_thread() {
    struct closing : frame_pool {
      ~closing() { closed = true; }
    };
    static thread_local closing pool;
    return pool;
  }

  static inline thread_local bool closed = false; ///< the thread is ending, and the pool has been destroyed

  std::array<list, lists> lists_{};
};

/// Allocator of objects that belong to a frame and outlive it.
template <class T>
struct frame_allocator {
  using value_type = T;
  frame_allocator() = default;
  template <class U>
  frame_allocator(const frame_allocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(frame_pool::take(count * sizeof(T))); }
  void deallocate(T* at, size_t count) noexcept { frame_pool::give_back(at, count * sizeof(T)); }
  friend bool operator==(const frame_allocator&, const frame_allocator&) { return true; }
};

/// Whoever keeps a task and has to know of its end.
class task_owner {
 public:
  /// The frame has been destroyed, with everything that it held: it was done, or has been ended. Called once.
  virtual void task_ended() noexcept = 0;
  /// An exception has left the coroutine or one that it awaits. The frame is destroyed next.
  virtual void task_failed(const std::exception_ptr& why) noexcept = 0;

 protected:
  ~task_owner() = default;
};

/// Through this link pending answers refer to the frame that waits for them. It outlives the frame.
class task_link {
 public:
  explicit task_link(std::coroutine_handle<> root, task_owner* owner = nullptr)
      : root_(root), owner_(owner) {}
  task_link(const task_link&) = delete;
  task_link& operator=(const task_link&) = delete;

  /// False: the frame has been destroyed, or will be when it suspends, and must not be accessed.
  bool alive() const { return root_ && !ends_; }

  /// Resumes the task at `at`, one of its suspended frames, until it suspends again.
  void resume(std::coroutine_handle<> at) {
    assert(alive() && !running_);
    running_ = true;
    at.resume();
    running_ = false;
    if (ends_ || root_.done()) // parameters live as long as the frame, not only as its body
      end();
  }

  /// Destroys the frame, or, if it is running, lets it be destroyed when it suspends.
  void end() {
    ends_ = true;
    if (running_ || !root_)
      return;
    std::exchange(root_, {}).destroy();
    if (auto* owner = std::exchange(owner_, nullptr))
      owner->task_ended();
  }

  /// An exception leaves one of the frames. False: nobody expects that.
  bool fail(const std::exception_ptr& why) {
    if (owner_ == nullptr)
      return false;
    failed_ = ends_ = true;
    owner_->task_failed(why);
    return true;
  }
  bool failed() const { return failed_; }

 private:
  std::coroutine_handle<> root_;
  task_owner* owner_;
  bool running_ = false;
  bool ends_ = false;
  bool failed_ = false;
};

template <class T>
class task;

namespace detail {

class task_promise_base {
 public:
  static void* operator new(size_t bytes) { return frame_pool::take(bytes); }
  static void operator delete(void* frame, size_t bytes) noexcept { frame_pool::give_back(frame, bytes); }

  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept {
    struct to_whom_awaits {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept { return next; }
      void await_resume() noexcept {}
      std::coroutine_handle<> next;
    };
    bool go_on = awaited_by && !link->failed();
    return to_whom_awaits{go_on ? awaited_by : std::noop_coroutine()};
  }
  void unhandled_exception() { // no exception leaves a handler
    if (!link->fail(std::current_exception()))
      std::terminate();
  }

  std::shared_ptr<task_link> link; ///< link of the root frame; set before the frame runs
  std::coroutine_handle<> awaited_by;
};

template <class T>
class task_promise : public task_promise_base {
 public:
  task<T> get_return_object();
  void return_value(T value) { value_.emplace(std::move(value)); }
  T take() { return std::move(*value_); }

 private:
  std::optional<T> value_;
};

template <>
class task_promise<void> : public task_promise_base {
 public:
  task<void> get_return_object();
  void return_void() {}
  void take() {}
};

} // namespace detail

/// A coroutine that has not started or is in progress. Either an actor's state keeps it and calls `start`, or
/// another task awaits it and gets its value. It may be destroyed or replaced at any time, also from within
/// itself.
template <class T = void>
class [[nodiscard]] task {
 public:
  using promise_type = detail::task_promise<T>;

  task() = default;
  task(task&& other) noexcept
      : frame_(std::exchange(other.frame_, {})), link_(std::exchange(other.link_, {})) {}
  task& operator=(task&& other) noexcept {
    task former(std::move(*this));
    frame_ = std::exchange(other.frame_, {});
    link_ = std::exchange(other.link_, {});
    return *this;
  }
  ~task() {
    if (link_)
      link_->end();
    else if (frame_)
      frame_.destroy();
  }

  /// Runs it until it first suspends. Call once. `owner`: outlives the frame; null: an exception ends the process.
  void start(task_owner* owner = nullptr) {
    assert(frame_ && !link_);
    auto link = std::allocate_shared<task_link>(frame_allocator<task_link>(), frame_,
                                                owner); // `this` may be destroyed when it returns
    auto frame = frame_;
    link_ = link;
    frame.promise().link = link;
    link->resume(frame);
  }

  /// False: there is no coroutine.
  bool is_given() const { return static_cast<bool>(frame_); }
  /// True from `start` until it is done.
  bool in_progress() const { return link_ && link_->alive(); }
  /// Destroys the frame; a running one when it suspends. The owner is told.
  void end() {
    if (auto link = link_) // the owner may destroy `this`
      link->end();
  }

  // ---- awaited by another task ----

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> by) noexcept {
    frame_.promise().link = by.promise().link;
    frame_.promise().awaited_by = by;
    return frame_;
  }
  T await_resume() { return frame_.promise().take(); }

 private:
  friend promise_type;
  explicit task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
  std::shared_ptr<task_link> link_; ///< set by `start`
};

template <class T>
task<T> detail::task_promise<T>::get_return_object() {
  return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}

inline task<void> detail::task_promise<void>::get_return_object() {
  return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

// An event that one task of an actor awaits and another task of the same actor sets.

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
