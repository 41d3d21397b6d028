// What a disk can do now: set by its actor, read by whoever would use it, on any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

namespace terrace::actors {

class disk_service {
 public:
  /// Objects can be read. While they cannot, the tier's objects count as not there; they may come back.
  bool reads() const { return reads_.load(std::memory_order_acquire); }

  /// Objects may be written: all is well, or it is time to try again.
  bool writes() const { return writes_.load(std::memory_order_acquire); }

  /// Why the tier is degraded; empty while it is not.
  std::string reason() const {
    std::lock_guard lock(mutex_);
    return reason_;
  }

  void set(bool reads, bool writes, std::string reason) {
    std::lock_guard lock(mutex_);
    reason_ = std::move(reason);
    reads_.store(reads, std::memory_order_release);
    writes_.store(writes, std::memory_order_release);
  }

 private:
  std::atomic<bool> reads_{true};
  std::atomic<bool> writes_{true};
  mutable std::mutex mutex_;
  std::string reason_;
};

} // namespace terrace::actors
