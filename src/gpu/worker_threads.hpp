// A few threads for calls that block.
#pragma once

#include "base/error.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace terrace::gpu {

/// Jobs begin in the order in which they were added. Safe on all threads.
class worker_threads {
 public:
  using starter = std::function<std::thread(std::function<void()>)>;

  /// Errors: `no_space` if the system has no more threads. `start` is for tests.
  static result<std::unique_ptr<worker_threads>> make(size_t count, const starter& start = in_a_thread) {
    std::unique_ptr<worker_threads> made(new worker_threads);
    made->threads_.reserve(count);
    try {
      for (size_t i = 0; i < count; ++i)
        made->threads_.push_back(start([all = made.get()] { all->run(); }));
    } catch (const std::system_error& why) {
      return fail(errc::no_space, "no thread for calls that block: " + std::string(why.what()));
    }
    return made;
  }
  /// Waits for all jobs.
  ~worker_threads() {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& each : threads_)
      each.join();
  }
  worker_threads(const worker_threads&) = delete;

  void add(std::function<void()> job) {
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
  }

 private:
  worker_threads() = default;
  static std::thread in_a_thread(std::function<void()> work) { return std::thread(std::move(work)); }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
      if (jobs_.empty())
        return;
      auto job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      job = nullptr; // destroys what the job holds before the next one begins
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

} // namespace terrace::gpu
