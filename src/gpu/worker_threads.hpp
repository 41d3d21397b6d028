// A few threads for calls that block.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace terrace::gpu {

/// Jobs begin in the order in which they were added. Safe on all threads.
class worker_threads {
 public:
  explicit worker_threads(size_t count) {
    for (size_t i = 0; i < count; ++i)
      threads_.emplace_back([this] { run(); });
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
      job = nullptr; // what it has ends before the next one begins
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
