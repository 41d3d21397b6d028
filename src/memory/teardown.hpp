// A thread on which memory is released.
#pragma once

#include "base/keep_alive.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace terrace {

/// Unmapping a region and closing the last descriptor of a memfd free its pages one by one: for a large one
/// that takes seconds, in which a worker would serve nobody. This thread does it instead, in order.
///
/// All calls are safe on any thread and return at once. The destructor finishes everything that was handed
/// over; it must not run on the thread itself, so the things handed over must not own the teardown.
class teardown {
 public:
  /// `name` is that of the thread, at most 15 characters.
  explicit teardown(const char* name = "teardown");
  ~teardown();
  teardown(const teardown&) = delete;
  teardown& operator=(const teardown&) = delete;

  /// Runs `work` after everything that was handed over before. If the calling thread is the thread itself, or
  /// if there is no memory to queue it, runs it at once on the calling thread.
  void run(std::function<void()> work) noexcept;

  /// Finishes everything that was handed over, and ends the thread; what is handed over later runs on the
  /// calling thread. Must not be called on the thread itself. The last owner may call it if the things handed
  /// over own the teardown.
  void finish();

  /// Destroys a value on the thread.
  template <class T>
  void destroy(T value) {
    run([kept = std::make_shared<T>(std::move(value))]() mutable { kept.reset(); });
  }

 private:
  void work_off();

  std::mutex lock_; ///< protects the two below; never held while memory is released
  std::deque<std::function<void()>> line_;
  bool ending_ = false;
  bool ended_ = false;
  std::condition_variable more_;
  std::thread thread_;
  const std::thread::id id_ = thread_.get_id();
};

using teardown_ptr = std::shared_ptr<teardown>;

/// A deleter for shared pointers: deletes on the thread of `by`, or at once if `by` is null.
struct deleted_by {
  teardown_ptr by;

  template <class T>
  void operator()(T* value) const noexcept {
    if (by)
      by->run([value] { delete value; });
    else
      delete value;
  }
};

// Gives freed memory of the heap back to the kernel.

/// Returns a reference to hold until memory is freed. When the last one ends, all memory freed by then goes
/// back to the kernel: on the thread of `by`, since it takes milliseconds, or at once where `by` is null.
keep_alive trim_at_end(const teardown_ptr& by);

} // namespace terrace
